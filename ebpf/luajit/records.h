/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the LuaJIT unwinder and agent/interpreters/luajit share. */
#ifndef EF_LUAJIT_RECORDS_H
#define EF_LUAJIT_RECORDS_H

#include "../records.h"

/*
 * EF_FRAME_LUAJIT. The operand: a quarter of an address in 45 bits; above that enum ef_luajit_kind in 2 bits, the argument in 2, and 4 bits
 * of cookie. The next word: from bit 19 on a quarter of the address of the instruction that called the function, 0 where none of
 * Lua's did; below, the number of the instruction that the function executes, which is all ones where it is not known. The
 * argument is 0 where the function is what that instruction calls, else which argument of the call it was.
 */
#define EF_LUAJIT_ADDRESS_BITS 45
#define EF_LUAJIT_POSITION_BITS 19
#define EF_LUAJIT_UNKNOWN ((1U << EF_LUAJIT_POSITION_BITS) - 1)

enum ef_luajit_kind {
	EF_LUAJIT_LUA = 0,         /* the prototype (GCproto) of a function */
	EF_LUAJIT_C = 1,           /* a function that is written in C */
	EF_LUAJIT_INSTRUCTION = 2, /* an instruction of a function that a trace has inlined */
};

/* Value of the map `luajit_files`, by file key. */
struct ef_luajit {
	__u64 vm_start; /* offset in the file of the interpreter, which is one piece of assembly */
	__u64 vm_length;
	/* offsets in global_State; trace numbers are those of the JIT's state, which stands behind it */
	__u32 jit_base;
	__u32 vm_state;
	__u32 traces;
	__u16 trace_code;     /* offset of GCtrace.mcode */
	__u8 is_gc64;         /* pointers to collected objects have 8 bytes, and frames two slots */
	__u8 has_trace_state; /* vm_state has the number of the trace that runs */
	/* the interpreter's native frame: size, and offsets of lua_State, instruction, the one before, nresults, saved fp */
	__u16 frame_bytes;
	__u16 frame_thread;
	__u16 frame_instruction;
	__u16 frame_previous;
	__u16 frame_results;
	__u16 frame_fp;
	__u32 reserved;
};

#endif
