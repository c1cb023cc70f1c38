/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the Lua unwinder keeps for the length of a sample. */
#ifndef EF_LUA_STATE_H
#define EF_LUA_STATE_H

#include "../kernel.h"
#include "records.h"

/* Saved by the loop, saved by what it has called, and the registers of the leaf; a power of two */
#define LUA_WORDS 64

/* A function that is being called (CallInfo). */
struct lua_call {
	u64 info;     /* 0: none */
	u64 slot;     /* where it stands on the stack of values */
	u64 function; /* the value there: closure, or function of C */
	u64 native;   /* the function of C */
	u64 proto;    /* 0: it is written in C */
	u64 pc;       /* behind the instruction that it executes */
	u64 code;
	u64 status;
};

/* The Lua frames of the sampled stack that were not taken yet. */
struct ef_lua_state {
	u64 key;                /* the interpreter's file; 0: none was detected */
	struct ef_lua file;     /* its entry, copied once a sample */
	u64 thread;             /* lua_State whose frames are taken */
	u64 end;                /* of the native frames that were passed */
	struct lua_call next;   /* info 0: no frame is left */
	struct lua_call caller; /* of that */
	struct lua_call read;
	struct lua_call none; /* of what no instruction of Lua has called */
	u64 words[LUA_WORDS];
	u64 found;      /* of the words the one that is a lua_State; 0: none yet */
	u64 nearest;    /* where its errors are caught */
	u64 pc;         /* of the words the one that is an instruction of the next function */
	u64 code_bytes; /* of that */
	u64 value[2];
	u64 arguments[6];
	u64 source[2]; /* of a prototype: name of the file, lines */
};

#endif
