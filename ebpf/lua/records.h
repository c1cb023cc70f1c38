/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the Lua unwinder and agent/interpreters/lua share. */
#ifndef EF_LUA_RECORDS_H
#define EF_LUA_RECORDS_H

#include "../records.h"

/*
 * EF_FRAME_LUA. The operand: a sixteenth of the address of the function's prototype (Proto) in 44 bits, of a function that is
 * written in C that of its caller; above that 1 bit: is it written in C, 4 bits of cookie, then 3 bits: 0 where it is what its caller's
 * instruction calls, else which argument of that, or EF_LUA_FINALIZER. The next word: the number of the instruction that the function executes in 17 bits, of
 * one that is written in C bits of its address; that which its caller executes in 15; all ones where they are not known.
 * Then the distance from its prototype to that of its caller in units of 16 bytes, signed, EF_LUA_NO_CALLER: it has none.
 */
#define EF_LUA_ADDRESS_BITS 44
#define EF_LUA_POSITION_BITS 17
#define EF_LUA_CALL_BITS 15
#define EF_LUA_NO_CALLER 2147483648ULL
#define EF_LUA_FINALIZER 7

/* Value of the map `lua_files`, by file key. Offsets of members, in bytes. */
struct ef_lua {
	__u64 loop_start; /* luaV_execute: offset in the file */
	__u64 loop_length;
	/* lua_State */
	__u16 thread_status;
	__u16 thread_info;
	__u16 thread_error; /* errorJmp */
	__u16 thread_pc;    /* of the innermost function; 0: each CallInfo has its own */
	/* CallInfo */
	__u16 info_function; /* its place on the stack of values */
	__u16 info_pc;
	__u16 info_previous; /* 0: they are an array, of elements with info_bytes */
	__u16 info_bytes;
	__u16 info_status; /* 0: there is none */
	__u16 fresh_mask;  /* of the status, compared with fresh_value: the function began a run of the loop */
	__u16 fresh_value;
	__u16 tail_mask;
	__u16 finalizer_mask; /* what it has called is a finalizer */
	__u16 closure_proto;
	/* Proto */
	__u16 proto_code;
	__u16 proto_count;
	__u16 proto_source;
	__u16 proto_lines; /* first line, last line */
	__u8 tag_mask;     /* of a value's type, compared with tag_lua: a function of Lua */
	__u8 tag_lua;
	__u8 has_c_flag; /* both kinds of functions have one tag; a byte of the closure shows */
	__u8 keeps_pc;   /* the loop has the instruction in a register, and saves it where it may fail only */
};

#endif
