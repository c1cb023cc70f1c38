/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The LuaJIT unwinder. A thread of Lua (coroutine) has a stack of values; its frames are chained in it, the head of each leading to
 * the one before:
 *
 *   head: function, link | slots ...       link: where the caller goes on, or a distance; its low bits say which kind of frame it is
 *
 * The interpreter is one piece of assembly, each call of which from C has one native frame (`C frame`). It runs the Lua frames up to one
 * that says that it was called from C. Code of traces (the JIT) runs in the same native frame. So at both the native unwinder comes here:
 * the Lua frames of that run go into the trace, and the C frame leads to its caller.
 *
 * Where the C frame is only the interpreter's stack pointer says, and its helpers and traces move that. But a C frame holds its lua_State, and the
 * lua_State leads to the innermost C frame that it has: what lies a little above the stack pointer and leads to itself is the one.
 * Those further out are chained. A coroutine has C frames of its own above those of the one that has resumed it.
 *
 * What runs in a trace are the Lua frames at its beginning, and functions that were inlined. How to make frames of these the trace
 * has noted for each place where it may be left (a snapshot): ebpf/luajit/trace.h.
 */
#ifndef EF_LUAJIT_H
#define EF_LUAJIT_H

#include "trace.h"

/* Words above the stack pointer in which the C frame is looked for: spilled values of a trace (1 KiB), registers at its exit */
#define LUAJIT_REACH_WORDS 192
#define LUAJIT_CONTINUE_CALLBACK 1

static __always_inline int load_luajit(struct ef_luajit_state *w, u64 key)
{
	struct ef_luajit *file = bpf_map_lookup_elem(&luajit_files, &key);
	if (!file)
		return 1;
	w->file = *file;
	w->key = key;
	w->thread = w->previous = w->frame = 0;
	w->entry = -1;
	return 0;
}

static __always_inline bool is_c_frame(const struct ef_luajit_state *w, u64 at, u64 owner)
{
	if (!w->file.is_gc64)
		owner = (u32)owner;
	if (at & 15 || owner < 4096 || owner & 7 || owner >= USER_ADDRESS_END)
		return 0;
	u64 frame = 0;
	if (USER_READ(&frame, 8, owner + (w->file.is_gc64 ? 0x50 : 0x30)))
		return 0;
	return (frame & ~3ULL) == at;
}

/* Is there a C frame that leads to itself? 0: no, 1: it is w->at, 2: the stack could not be read. Global, so that it is verified once. */
__noinline int look_for_c_frame(u64 from)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUAJIT);
	if (!s)
		return 0;
	struct ef_luajit_state *w = &s->runtimes.luajit;

	if (LUAJIT_READ(w->stack, sizeof(w->stack), from))
		return 2;
	for (u32 i = 0; i < LUAJIT_STACK_WORDS; i++) {
		u64 at = from + i * 8 - w->file.frame_thread;
		if (at >= s->state.sp && is_c_frame(w, at, w->stack[i])) {
			w->at = at;
			w->owner = w->file.is_gc64 ? w->stack[i] : (u32)w->stack[i];
			return 1;
		}
	}
	return 0;
}

static __always_inline bool find_c_frame(struct ef_scratch *s, struct ef_luajit_state *w)
{
	u64 sp = s->state.sp & ~7ULL;

	if (w->previous && w->previous - sp < LUAJIT_REACH_WORDS * 8) {
		w->at = w->previous;
		w->owner = w->thread;
		return 1;
	}
	for (u32 i = 0; i < LUAJIT_REACH_WORDS; i += LUAJIT_STACK_WORDS) {
		int found = look_for_c_frame(sp + i * 8);
		if (found)
			return found == 1;
	}
	return 0;
}

/* Does a frame begin there? BASE of the interpreter is not valid everywhere. */
static __always_inline bool is_luajit_base(struct ef_luajit_state *w, u64 base)
{
	u64 head[2];

	if (base & 7 || base <= w->bottom || base - w->bottom > LUAJIT_MAX_STACK ||
	    LUAJIT_READ(head, sizeof(head), base - 16))
		return 0;
	return read_luajit_function(w, w->file.is_gc64 ? head[0] & LUAJIT_POINTER : (u32)head[1]);
}

/* Finds the frames of w->owner. 1: this is not code of its own. Global, so that it is verified once. */
__noinline int begin_luajit_thread(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUAJIT);
	if (!s)
		return 1;
	struct ef_luajit_state *w = &s->runtimes.luajit;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	bool is_gc64 = w->file.is_gc64, is_first = !w->thread;
	u64 thread = w->owner, base = 0;
	u64 stack = luajit_pointer(w, thread + (is_gc64 ? 0x38 : 0x24));
	u64 global = luajit_pointer(w, thread + (is_gc64 ? 0x10 : 0x08));

	w->thread = thread;
	w->frame = w->replaced = 0;
	w->bottom = is_gc64 ? stack + 8 : stack;
	if (!stack || !global)
		return !m->key;
	if (is_first) {
		base = luajit_pointer(w, global + w->file.jit_base);
		if (!m->key && !base)
			return 1;
		if (base) {
			if (begin_trace(s, w, m, global))
				return 1;
		} else if (s->is_leaf) {
			base = s->state.leaf.by_dwarf_number[REG_LUAJIT_BASE];
			w->instruction = s->state.leaf.by_dwarf_number[REG_LUAJIT_INSTRUCTION];
			if (!is_luajit_base(w, base))
				base = 0;
		}
	}
	if (!base) {
		base = LUAJIT_WORD(thread + (is_gc64 ? 0x20 : 0x10));
		w->instruction = luajit_pointer(w, w->at + w->file.frame_instruction);
	}
	if (base <= w->bottom || base - w->bottom > LUAJIT_MAX_STACK || base & 7) {
		count(EF_COUNTER_luajit_bad_frame);
		return 0;
	}
	w->frame = base - 8;
	return 0;
}

/* Instruction behind the call of the frame whose head ends at `frame`; 0: it was not called by Lua. */
static __always_inline u64 luajit_return(const struct ef_luajit_state *w, u64 frame)
{
	u64 link = LUAJIT_WORD(frame);

	if (!w->file.is_gc64)
		link >>= 32;
	return link & 3 ? 0 : link;
}

/* Which argument of the function whose frame is `frame` the other one is; 0: none of the first three. */
static __always_inline u32 luajit_argument(struct ef_luajit_state *w, u64 frame, u64 function)
{
	if (LUAJIT_READ(w->proto, 24, frame + 8))
		return 0;
	u64 mask = w->file.is_gc64 ? LUAJIT_POINTER : 0xffffffff;
	for (u32 i = 0; i < 3; i++)
		if ((w->proto[i] & mask) == function)
			return i + 1;
	return 0;
}

/* A frame that says how far down its caller's is. */
static __always_inline int take_by_distance(struct ef_scratch *s, struct ef_luajit_state *w, u64 function,
					    u64 link)
{
	u64 frame = w->frame, distance = link & ~7ULL, before = frame - distance, kind = link & 7, call = 0;
	u64 words[2] = { LUAJIT_CONTINUE_CALLBACK + 1, 0 };

	if (!distance || distance > LUAJIT_MAX_STACK || before < w->bottom) {
		count(EF_COUNTER_luajit_bad_frame);
		return LUAJIT_END;
	}
	w->frame = before;
	if (kind == LUAJIT_VARARG)
		return LUAJIT_NEXT;
	u32 argument = 0;
	bool is_over = kind == LUAJIT_C || kind == LUAJIT_PROTECTED_C;
	if (kind == LUAJIT_CONTINUATION) {
		LUAJIT_READ(words, sizeof(words), frame - (w->file.is_gc64 ? 24 : 8));
		if (!w->file.is_gc64) {
			words[1] = words[0] >> 32;
			words[0] = (u32)words[0];
		}
		is_over = words[0] == LUAJIT_CONTINUE_CALLBACK;
		call = is_over ? 0 : words[1];
	} else if (before > w->bottom) {
		argument = kind == LUAJIT_C ? luajit_argument(w, before, function) : kind != LUAJIT_PROTECTED_C;
		call = argument ? luajit_return(w, before) : 0;
	}
	int result = push_luajit(s, w, function, call, argument);
	w->replaced = 0;
	w->instruction = kind == LUAJIT_CONTINUATION ? call : 0;
	return result ?: is_over ? LUAJIT_RUN_OVER : LUAJIT_NEXT;
}

/* Takes the next frame. Global, so that it is verified once. */
__noinline int take_luajit_frame(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUAJIT);
	if (!s)
		return LUAJIT_END;
	struct ef_luajit_state *w = &s->runtimes.luajit;
	u64 head[2];

	if (w->entry >= 0)
		return take_inlined(s, w);
	if (w->frame <= w->bottom || LUAJIT_READ(head, sizeof(head), w->frame - 8))
		return LUAJIT_END;
	u64 function = w->file.is_gc64 ? head[0] & LUAJIT_POINTER : (u32)head[1];
	u64 link = w->file.is_gc64 ? head[1] : head[1] >> 32;
	u32 call = 0;
	if (link & 3)
		return take_by_distance(s, w, w->replaced ?: function, link);
	if (link < 4096 || link >= USER_ADDRESS_END || LUAJIT_READ(&call, 4, link - 4)) {
		count(EF_COUNTER_luajit_bad_frame);
		return LUAJIT_END;
	}
	int result = push_luajit(s, w, w->replaced ?: function, link, 0);
	w->replaced = 0;
	w->instruction = link;
	w->frame -= ((call >> 8 & 255) + 1 + !!w->file.is_gc64) * 8;
	return result;
}

/* As unwind_steps(). */
__noinline int take_luajit_frames(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUAJIT);
	if (!s)
		return LUAJIT_END;
	for (u32 i = 0; i < FRAMES_AT_A_TIME; i++) {
		if (s->state.user_frames >= config.max_user_frames)
			return LUAJIT_END;
		int result = take_luajit_frame();
		if (result != LUAJIT_NEXT)
			return result;
	}
	return LUAJIT_NEXT;
}

static __always_inline void take_luajit_run(struct ef_luajit_state *w)
{
	for (u32 i = 0; i < EF_MAX_USER_FRAMES / FRAMES_AT_A_TIME + 1; i++) {
		int result = take_luajit_frames();
		if (result == LUAJIT_RUN_OVER)
			return;
		if (result == LUAJIT_END)
			break;
	}
	w->frame = 0;
}

/* A C frame in which C runs without a function, as the parser: it says so by a place on the stack of values. */
static __always_inline bool runs_nothing(const struct ef_luajit_state *w)
{
	s32 results = (s32)LUAJIT_WORD(w->at + w->file.frame_results);
	u64 stack = w->file.is_gc64 ? w->bottom - 8 : w->bottom;

	return results < 0 && w->frame < stack - results;
}

/* To the caller of the C frame. */
static __always_inline int leave_c_frame(struct ef_scratch *s, struct ef_luajit_state *w)
{
	u64 saved[2];

	if (LUAJIT_READ(saved, sizeof(saved), w->at + w->file.frame_fp))
		return 0;
	w->previous = LUAJIT_WORD(w->at + w->file.frame_previous) & ~3ULL;
	s->state.sp = w->at + w->file.frame_bytes;
	s->state.fp = saved[0];
	s->state.pc = saved[1];
	s->state.runtime_file = w->key;
	return 1;
}

/* Of code of the interpreter and of traces: pushes the Lua frames that it runs and goes to the caller of its C frame. */
__noinline int unwind_luajit(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUAJIT);
	if (!s)
		return 0;
	struct ef_luajit_state *w = &s->runtimes.luajit;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	u64 key = m->key ?: s->runtime_files[EF_RUNTIME_LUAJIT];

	if (begins_in_sample(s, EF_RUNTIME_LUAJIT))
		w->key = 0;
	if (w->key != key && load_luajit(w, key))
		return 0;
	if (m->key && s->table_offset - w->file.vm_start >= w->file.vm_length)
		return 0;
	if (!find_c_frame(s, w)) {
		if (m->key)
			count(EF_COUNTER_luajit_no_frame);
		return 0;
	}
	if (w->owner != w->thread) {
		if (begin_luajit_thread(slot)) {
			w->thread = 0;
			return 0;
		}
	} else {
		w->instruction = luajit_pointer(w, w->at + w->file.frame_instruction);
	}
	u32 frames = s->state.user_frames;
	if (w->frame && !runs_nothing(w))
		take_luajit_run(w);
	/* instructions of Lua have no other native frame than code of traces has: none */
	if (m->key && s->state.user_frames == frames) {
		push_word(s, FRAME_WORD(EF_FRAME_FILE, s->table_offset));
		push_word(s, m->key);
		s->state.user_frames++;
	}
	return leave_c_frame(s, w);
}

#endif
