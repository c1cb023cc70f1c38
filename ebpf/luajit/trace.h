/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a trace of LuaJIT (GCtrace) executes. Its code is split by snapshots: what the interpreter's frames would be if the trace were left
 * there. A snapshot has the instruction, and of each slot that was changed what it holds; slots of frames' heads have a flag, and
 * hold constants: links, and functions. Slots count from the function in whose frame the trace runs.
 */
#ifndef EF_LUAJIT_TRACE_H
#define EF_LUAJIT_TRACE_H

#include "../cookie.h"
#include "../unwind-frame.h"

/* lj_frame.h: kinds of frames */
#define LUAJIT_C 1
#define LUAJIT_CONTINUATION 2
#define LUAJIT_VARARG 3
#define LUAJIT_PROTECTED_C 5
/* lj_obj.h: types of objects */
#define LUAJIT_TFUNC 8
#define LUAJIT_TTRACE 9
/* GCstr: number and hash of the text, before 2020 hash and length */
#define LUAJIT_TEXT_NUMBER 8
#define LUAJIT_TEXT_NUMBER_GC64 12
/* A value without its tag */
#define LUAJIT_POINTER ((1ULL << 47) - 1)
/* Bytes of a stack of values: LJ_STACK_MAX and some */
#define LUAJIT_MAX_STACK (1U << 20)
#define LUAJIT_MAX_SNAPSHOTS 16 /* bits of their number */
/* lj_jit.h: SNAP_FRAME; constants of a trace are below REF_BIAS */
#define LUAJIT_SNAP_FRAME 0x10000
#define LUAJIT_CONSTANTS 0x8000
/* Words of GCtrace with pointers of 64 bits: type and number of snapshots, constants, snapshots, their entries, first instruction */
#define TRACE_HEAD 1
#define TRACE_CONSTANTS 4
#define TRACE_SNAPSHOTS 6
#define TRACE_MAP 7
#define TRACE_START 9

enum luajit_result {
	LUAJIT_NEXT = 0,
	LUAJIT_RUN_OVER = 1,
	LUAJIT_END = 2, /* no frame is left, or what follows can't be trusted */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, struct ef_luajit);
} luajit_files SEC(".maps");

#define LUAJIT_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_luajit_read_failed)
#define LUAJIT_WORD(address) user_word((address), EF_COUNTER_luajit_read_failed)

static __always_inline u64 luajit_pointer(const struct ef_luajit_state *w, u64 address)
{
	u64 word = LUAJIT_WORD(address);

	return w->file.is_gc64 ? word : (u32)word;
}

/* Reads the head of a function; false where none is there. */
static __always_inline bool read_luajit_function(struct ef_luajit_state *w, u64 function)
{
	if (function < 4096 || function & 7 || LUAJIT_READ(w->function, sizeof(w->function), function))
		return 0;
	u8 type = w->file.is_gc64 ? w->function[1] >> 8 : w->function[0] >> 40;
	return type == LUAJIT_TFUNC;
}

static __always_inline void push_luajit_words(struct ef_scratch *s, u64 kind, u64 address, u64 call, u64 rest)
{
	push_word(s,
		  FRAME_WORD(EF_FRAME_LUAJIT, kind << EF_LUAJIT_ADDRESS_BITS | (address & LUAJIT_POINTER) >> 2));
	push_word(s, (call & LUAJIT_POINTER) >> 2 << EF_LUAJIT_POSITION_BITS | rest);
	/* addresses of objects mean something in this process only */
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
}

/* `returns`: behind the instruction that called it, 0: none. The function executes w->instruction. */
static __always_inline int push_luajit(struct ef_scratch *s, struct ef_luajit_state *w, u64 function, u64 returns,
				       u32 argument)
{
	u64 call = returns >= 4096 ? returns - 4 : 0, kind = argument << 2;

	if (!read_luajit_function(w, function)) {
		count(EF_COUNTER_luajit_bad_frame);
		return LUAJIT_END;
	}
	bool is_gc64 = w->file.is_gc64;
	if (is_gc64 ? (u8)(w->function[1] >> 16) : (u8)(w->function[0] >> 48)) {
		/* what C has called is a native frame only */
		if (call)
			push_luajit_words(s, kind | EF_LUAJIT_C, function, call, EF_LUAJIT_UNKNOWN);
		return LUAJIT_NEXT;
	}
	u64 code = is_gc64 ? w->function[4] : (u32)w->function[2];
	u64 proto = code - (is_gc64 ? 0x68 : 0x40);
	/* from the file's name on: also the first line and their number */
	if (code < 4096 || LUAJIT_READ(w->proto, 16, proto + (is_gc64 ? 0x40 : 0x28)))
		return LUAJIT_END;
	u64 position = (w->instruction - code) / 4 - 1;
	if (position >= EF_LUAJIT_UNKNOWN || w->instruction <= code)
		position = EF_LUAJIT_UNKNOWN;
	/* a name that takes another one's place has another number, or hash */
	u64 chunk = is_gc64 ? w->proto[0] : (u32)w->proto[0];
	u64 text = LUAJIT_WORD(chunk + (is_gc64 ? LUAJIT_TEXT_NUMBER_GC64 : LUAJIT_TEXT_NUMBER));
	kind |= cookie_of_bits(4, w->proto[0] ^ text, w->proto[1]) << 4;
	push_luajit_words(s, kind | EF_LUAJIT_LUA, proto, call, position);
	return LUAJIT_NEXT;
}

/* A constant of the trace. */
static __always_inline u64 trace_constant(const struct ef_luajit_state *w, u32 reference)
{
	if (reference >= LUAJIT_CONSTANTS)
		return 0;
	return LUAJIT_WORD(w->trace[TRACE_CONSTANTS] + (u64)(reference + 1) * 8);
}

/* An entry of the snapshot: the head of a frame, from the innermost one on, or any other slot. */
static __always_inline int take_inlined(struct ef_scratch *s, struct ef_luajit_state *w)
{
	u64 at = w->snapshot_map + (u64)w->entry * 4;
	u32 pair[2] = {};
	bool is_lowest = !w->entry;

	if (LUAJIT_READ(pair, sizeof(pair), is_lowest ? at : at - 4)) {
		w->entry = -1;
		return LUAJIT_NEXT;
	}
	w->entry--;
	u32 entry = is_lowest ? pair[0] : pair[1], slot = entry >> 24;
	if (!slot)
		w->replaced = trace_constant(w, entry & 0xffff) & LUAJIT_POINTER;
	if (slot < 2 || !(entry & LUAJIT_SNAP_FRAME))
		return LUAJIT_NEXT;
	u64 link = trace_constant(w, entry & 0xffff), returns = link & 3 ? 0 : link;
	if ((link & 7) == LUAJIT_VARARG)
		return LUAJIT_NEXT;
	u64 function = pair[0] >> 24 == slot - 1 ? trace_constant(w, pair[0] & 0xffff) & LUAJIT_POINTER : 0;
	int result = LUAJIT_NEXT;
	if (function)
		result = push_luajit(s, w, function, returns, 0);
	else if (w->instruction >= 4096)
		push_luajit_words(s, EF_LUAJIT_INSTRUCTION, w->instruction - 4, returns ? returns - 4 : 0, 0);
	w->instruction = returns;
	return result;
}

/* Finds the snapshot that the code at w->code belongs to: the last one before it. Global, so that it is verified once. */
__noinline int find_snapshot(u64 code)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUAJIT);
	if (!s)
		return 0;
	struct ef_luajit_state *w = &s->runtimes.luajit;
	u64 snapshots = w->trace[TRACE_SNAPSHOTS], offset = w->code - code, found[2] = {};
	u32 low = 0, high = w->trace[TRACE_HEAD] >> 16 & 0xffff;

	/* before 2021 they had no place in the code; that of the first one is 0 */
	if (LUAJIT_READ(found, 8, snapshots) || found[0] >> 48)
		return 0;
	for (u32 i = 0; i < LUAJIT_MAX_SNAPSHOTS && low < high; i++) {
		u32 middle = (low + high) >> 1;
		if (LUAJIT_READ(found, 8, snapshots + (u64)middle * 12))
			return 0;
		if (offset < found[0] >> 48)
			high = middle;
		else
			low = middle + 1;
	}
	if (!low || LUAJIT_READ(found, 12, snapshots + (u64)(low - 1) * 12))
		return 0;
	u32 entries = found[1] >> 16 & 255;
	w->snapshot_map = w->trace[TRACE_MAP] + (u64)(u32)found[0] * 4;
	w->instruction = (LUAJIT_WORD(w->snapshot_map + entries * 4) >> 8) + 4;
	w->entry = (s64)entries - 1;
	return 0;
}

/* The address in the trace's code that called a helper of the interpreter; 0: none is near. */
static __always_inline u64 find_trace_code(struct ef_scratch *s, struct ef_luajit_state *w, u64 code, u32 bytes)
{
	if (USER_READ(w->stack, sizeof(w->stack), s->state.sp & ~7ULL))
		return 0;
	for (u32 i = 0; i < LUAJIT_STACK_WORDS; i++)
		if (w->stack[i] - code - 1 < bytes)
			return w->stack[i] - 1;
	return 0;
}

/* Finds out what the trace that runs executes. 1: this is other code that no file backs. */
static __always_inline int begin_trace(struct ef_scratch *s, struct ef_luajit_state *w,
				       const struct ef_mapping *m, u64 global)
{
	bool is_gc64 = w->file.is_gc64;
	u32 number = LUAJIT_WORD(global + w->file.vm_state), at = w->file.trace_code >> 3;

	w->instruction = 0;
	/* where a trace collects garbage its number is not known */
	if (!w->file.has_trace_state || !number || number >> 16)
		return 0;
	u64 traces = luajit_pointer(w, global + w->file.traces);
	u64 trace = luajit_pointer(w, traces + (u64)number * (is_gc64 ? 8 : 4));
	if (trace < 4096 || LUAJIT_READ(w->trace, sizeof(w->trace), trace) ||
	    (u8)(is_gc64 ? w->trace[TRACE_HEAD] >> 8 : w->trace[0] >> 40) != LUAJIT_TTRACE)
		return !m->key;
	u64 code = w->trace[at & (LUAJIT_TRACE_WORDS - 1)];
	u32 bytes = w->trace[(at - 1) & (LUAJIT_TRACE_WORDS - 1)] >> 32;
	/* stubs by which it is left are in the same memory */
	if (!m->key && code - m->start >= m->length)
		return 1;
	w->instruction = (is_gc64 ? w->trace[TRACE_START] : w->trace[6] >> 32) + 4;
	w->code = m->key ? find_trace_code(s, w, code, bytes) : s->state.pc - s->is_return_address;
	if (is_gc64 && w->code - code < bytes)
		find_snapshot(code);
	return 0;
}

#endif
