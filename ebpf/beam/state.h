/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the BEAM unwinder keeps for the length of a sample. */
#ifndef EF_BEAM_STATE_H
#define EF_BEAM_STATE_H

#include "../kernel.h"
#include "records.h"

#define BEAM_TABLES 3
/* Words of the stack that are read at a time */
#define BEAM_WORDS 16
#define BEAM_CODE_BYTES 64

struct beam_range {
	u64 start;
	u64 end;
};

/* Where modules are, sorted. */
struct beam_table {
	u64 modules;
	u64 count;
	u64 allocated;
	u64 middle;
};

struct ef_beam_state {
	u64 is_looked_up;
	struct ef_beam vm;
	struct beam_table tables[BEAM_TABLES];
	u32 has_tables; /* 0: they were not read in this sample yet */
	u32 table;      /* that in use; BEAM_TABLES: any */
	/* the module that was found last */
	struct beam_range module;
	u64 cookie;
	/* memory with the JIT's code */
	u64 code_start;
	u64 code_length;
	/* the Erlang process's stack, from where its frames were not taken yet */
	u64 at;
	u64 end;
	u32 next_word;
	u32 loose_words; /* that need not be aligned */
	u32 has_top;     /* the frame on top was taken */
	u32 is_unread;   /* a table of modules */
	u32 is_waiting;  /* the process: it has no frame of code that runs */
	u64 process;
	u64 words[BEAM_WORDS];
	union {
		u8 code[BEAM_CODE_BYTES + 8]; /* the last ones are 0 */
		u32 instructions[BEAM_CODE_BYTES / 4];
	};
	/* BEAM_HAS_LINK: the return address that the leaf has in its register; 0: it is no function of a module */
	u64 link;
	/* that of code which all modules share: a function that jumped there has it on the stack, too */
	u64 shared_link;
	u64 registers; /* of the scheduler: where its stack ends */
	u32 is_before_frame;
	u32 has_left_frame;
	struct ef_beam nothing; /* never written */
};

#endif
