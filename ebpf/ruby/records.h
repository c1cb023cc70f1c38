/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the Ruby unwinder and agent/interpreters/ruby share. */
#ifndef EF_RUBY_RECORDS_H
#define EF_RUBY_RECORDS_H

#include "../records.h"

/*
 * EF_FRAME_RUBY. The operand: the instruction sequence, an eighth of its address in 45 bits, 0 for a function that is written in
 * C; above that 8 bits of cookie. The next word: from bit 19 on the method entry, an eighth of its address, 0 where it is not
 * known; below, the position of the next instruction. Both 0: the garbage collector runs.
 */
#define EF_RUBY_ADDRESS_BITS 45
#define EF_RUBY_POSITION_BITS 19

enum ef_ruby_position {
	EF_RUBY_UNKNOWN = 524286,
	EF_RUBY_C = 524287, /* a function that is written in C */
};

/* Where a thread keeps its execution context. Addresses are ELF addresses less the difference between address and file offset
 * of rb_vm_exec. */
enum ef_ruby_access {
	EF_RUBY_NOWHERE = 0,
	EF_RUBY_GLOBAL = 1, /* at `at`, of whichever thread runs: thread_id in it says whether it is this one */
	EF_RUBY_OFFSET = 2, /* at thread pointer + `at` */
	EF_RUBY_MODULE = 3, /* module ID and offset in it stand at `at`; `add` is added */
	EF_RUBY_DESCRIPTOR = 4, /* arm64: as MODULE, by a descriptor at `at` that the loader has filled in */
};

struct ef_ruby_range {
	__u64 start; /* offset in the file */
	__u64 length;
};

/* Value of the map `ruby_files`, by file key: agent/interpreters/ruby/layout.ts says what they are. */
struct ef_ruby {
	struct ef_ruby_range core; /* vm_exec_core, which runs instructions; empty: it is part of rb_vm_exec */
	struct ef_ruby_range loop; /* rb_vm_exec, which calls it, or compiled code */
	__s64 at;
	__s32 add;
	__u8 access; /* enum ef_ruby_access */
	__u8 is_musl;
	__u8 frame_bytes; /* of rb_control_frame_t */
	__u8 has_classes; /* classes say what they are called */
	__u16 thread_id;  /* offset in rb_thread_t of the number that the thread library gave it; 0: not needed */
	__u16 collector;  /* offset in rb_vm_t of the object space, 0: not known; and of the flags in that */
	__u16 collector_flags;
	__u8 context_thread; /* offset of thread_ptr in rb_execution_context_t, of vm in rb_thread_t */
	__u8 thread_machine;
};

#endif
