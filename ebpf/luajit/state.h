/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the LuaJIT unwinder keeps for the length of a sample. */
#ifndef EF_LUAJIT_STATE_H
#define EF_LUAJIT_STATE_H

#include "../kernel.h"
#include "records.h"

/* Words of the stack that are looked at at a time, a power of two */
#define LUAJIT_STACK_WORDS 32
#define LUAJIT_TRACE_WORDS 16

/* The Lua frames of the sampled stack that were not taken yet. */
struct ef_luajit_state {
	u64 key;               /* the interpreter's file; 0: none was detected */
	struct ef_luajit file; /* its entry, copied once a sample */
	u64 at;                /* the interpreter's native frame that is unwound now */
	u64 owner;             /* lua_State of that */
	u64 thread;            /* lua_State whose frames are taken */
	u64 previous;          /* the thread's native frame further out; 0: it has none */
	u64 bottom;            /* of the thread's stack of values */
	u64 frame;             /* the last slot of the next frame's head; 0: none is left */
	u64 instruction;       /* behind that which the next frame executes; 0: not known */
	u64 replaced;          /* function of the next frame, in place of that in its head */
	u64 stack[LUAJIT_STACK_WORDS];
	u64 function[6];
	u64 proto[10];
	u64 trace[LUAJIT_TRACE_WORDS];
	u64 snapshot_map; /* entries of the snapshot */
	s64 entry;        /* of them, that which is next; below 0: none is left */
	u64 code;         /* address in the trace's code that is executed */
};

#endif
