/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the BEAM unwinder and agent/interpreters/beam share. */
#ifndef EF_BEAM_RECORDS_H
#define EF_BEAM_RECORDS_H

#include "../records.h"

/*
 * EF_FRAME_BEAM. The operand: the address in the JIT's code. The next word: from bit 19 on the module that the code belongs to, an
 * eighth of its address, and below the first 19 bits of its MD5; 0: code that belongs to no module.
 */
#define EF_BEAM_COOKIE_BITS 19

/* Value of the map `beam_vms`, by process: agent/interpreters/beam/layout.ts says what they are. */
struct ef_beam {
	struct ef_attachment attachment;
	__u64 ranges;      /* address of the three tables of modules */
	__u64 active;      /* address of the number of the one that is in use, 0: not known */
	__u64 atoms;       /* address of the table of atoms */
	__u64 dirty_start; /* erts_dirty_process_main: offset in the file */
	__u64 dirty_bytes; /* 0: the build hides it */
	__u32 thread_key;  /* pthread key of a thread's ErtsSchedulerData */
	__u16 process;     /* offset in that: of the process that runs */
	__u16 md5;         /* offset in a module: address of its MD5 */
	__u16 registered;  /* offset in a process: under which name it is registered; 0: not known */
	__u16 resumed;     /* offset in a process: where it goes on, once it has its turn again; 0: not known */
	__u8 is_musl;
	__u8 has_name_terms; /* an atom's name is a term, else an address */
	__u16 reserved;
	__u32 switch_bytes; /* 0: it is not known */
	__u64 switch_start; /* code that goes from one process to the next, whose places are put aside */
};

#endif
