/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The CRuby unwinder. A thread's Ruby frames are an array, the innermost one at the lowest address:
 *
 *   execution context (a thread-local variable) -> rb_control_frame_t, the next one further out, ...
 *
 * rb_vm_exec runs a method and all Ruby methods that it calls, in vm_exec_core or in code of the JIT (YJIT). Where C calls back into Ruby
 * (Array#each) there is another rb_vm_exec; the frame with which it began has a flag (VM_FRAME_FLAG_FINISH). The native
 * unwinder asks here at each of these native frames, and the Ruby frames that it runs go into the trace before (leaf side of) it.
 * Functions that are written in C have a Ruby frame, too, with native frames of their own on its leaf side.
 *
 * What a frame is called depends on the method entry, which hangs on the frame's environment or, of a block, on one around it. It
 * is looked for here: the environment is gone when the agent reads names.
 *
 * Code of the JIT saves three registers and keeps the stack pointer where it is then, so its return address is near.
 */
#ifndef EF_RUBY_H
#define EF_RUBY_H

#include "../cookie.h"
#include "../unwind-frame.h"

/* rb_iseq_t.body, its iseq_encoded and location.label, rb_method_entry_t.def */
#define RUBY_ISEQ_BODY 16
#define RUBY_BODY_CODE 8
#define RUBY_BODY_LABEL 80
#define RUBY_ENTRY_DEFINITION 16
/* the collector runs: rb_objspace_t.flags.during_gc */
#define RUBY_DURING_GC (1U << 5)
/* Flags of an environment: vm_core.h */
#define RUBY_MAGIC_MASK 0x7fff0001
#define RUBY_MAGIC_C 0x55550001
#define RUBY_MAGIC_C_BLOCK 0x66660001
#define RUBY_MAGIC_DUMMY 0x79990001
#define RUBY_FLAG_FINISH 0x20
#define RUBY_FLAG_LOCAL 0x2
/* T_IMEMO, and kinds of those: imemo.h */
#define RUBY_IMEMO 0x1a
#define RUBY_IMEMO_KIND(flags) ((flags) >> 12 & 15)
#define RUBY_KIND_VARIABLES 2
#define RUBY_KIND_ENTRY 6
/* Frames of C at the root of a fiber */
#define RUBY_MAX_LAST 3
/* More than any build has: what is further away needs no look */
#define RUBY_FILE_BYTES (1ULL << 26)
/* Environments around one another */
#define RUBY_MAX_ENVIRONMENTS 10

enum ruby_result {
	RUBY_NEXT = 0, /* the frame belongs to the same run as the next one */
	RUBY_RUN_OVER = 1,
	RUBY_END = 2, /* no frame is left, or what follows can't be trusted */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, struct ef_ruby);
} ruby_files SEC(".maps");

#define RUBY_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_ruby_read_failed)
#define RUBY_WORD(address) user_word((address), EF_COUNTER_ruby_read_failed)

static __always_inline int load_ruby(struct ef_ruby_state *w, u64 key)
{
	struct ef_ruby *file = bpf_map_lookup_elem(&ruby_files, &key);
	if (!file)
		return 1;
	w->file = *file;
	w->key = key;
	w->has_begun = w->has_run = 0;
	w->frame = 0;
	return 0;
}

static __always_inline u64 ruby_context(const struct ef_ruby *file, u64 tp, u64 delta)
{
	u64 place[2] = {};

	switch (file->access) {
	case EF_RUBY_GLOBAL:
		return RUBY_WORD(file->at - delta);
	case EF_RUBY_OFFSET:
		return RUBY_WORD(tp + file->at);
	case EF_RUBY_MODULE:
		if (RUBY_READ(place, sizeof(place), file->at - delta))
			return 0;
		return thread_local_word(tp, place, file->add, file->is_musl, EF_COUNTER_ruby_read_failed);
	case EF_RUBY_DESCRIPTOR:
		return described_word(tp, file->at - delta, file->add, file->is_musl,
				      EF_COUNTER_ruby_read_failed);
	default:
		return 0;
	}
}

/* Must equal cookieOf() of ruby/plugin.ts. */
static __always_inline u64 ruby_cookie(u64 first, u64 second)
{
	return cookie_of_bits(8, first, second);
}

static __always_inline void push_ruby(struct ef_scratch *s, u64 iseq, u64 cookie, u64 entry, u32 position)
{
	push_word(s, FRAME_WORD(EF_FRAME_RUBY, cookie << EF_RUBY_ADDRESS_BITS | iseq >> 3));
	push_word(s, (entry >> 3) << EF_RUBY_POSITION_BITS | position);
	/* addresses of objects mean something in this process only */
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
}

static __always_inline bool is_collecting(const struct ef_ruby *file, u64 thread)
{
	if (!file->collector)
		return 0;
	u64 space = RUBY_WORD(RUBY_WORD(thread + file->thread_machine) + file->collector);
	return space && (u32)RUBY_WORD(space + file->collector_flags) & RUBY_DURING_GC;
}

/* Finds the thread's frames. Global, so that it is verified once. */
__noinline int begin_ruby(u64 delta)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(RUBY);
	if (!s)
		return 0;
	struct ef_ruby_state *w = &s->runtimes.ruby;
	const struct ef_ruby *file = &w->file;
	u64 tp = thread_pointer(), size = file->frame_bytes;
	u64 context = ruby_context(file, tp, delta);

	w->has_begun = 1;
	w->frame = 0;
	if (!context || !size || RUBY_READ(w->context, sizeof(w->context), context))
		return 0;
	u64 thread = RUBY_WORD(context + file->context_thread);
	/* pthread_self(): no other thread's begins as close to this one's end */
	if (file->thread_id && tp - RUBY_WORD(thread + file->thread_id) >= THREAD_BYTES) {
		count(EF_COUNTER_ruby_other_thread);
		return 0;
	}
	u64 frame = w->context[2], end = w->context[0] + w->context[1] * 8;
	if (end > USER_ADDRESS_END || frame < w->context[0] || frame >= end || (end - frame) % size) {
		count(EF_COUNTER_ruby_bad_frame);
		return 0;
	}
	w->frame = frame;
	/* the outermost one runs nothing */
	w->last = end - 2 * size;
	if (is_collecting(file, thread))
		push_ruby(s, 0, 0, 0, 0);
	return 0;
}

/* An imemo: its kind; else 0. */
static __always_inline u32 ruby_kind(u64 object)
{
	u64 flags = 0;

	if (object < 4096 || object & 7 || object >= USER_ADDRESS_END || RUBY_READ(&flags, 8, object))
		return 0;
	return (flags & 31) == RUBY_IMEMO ? RUBY_IMEMO_KIND(flags) : 0;
}

/* The method entry of the environment in w->env, or of one around it; 0: it is none of a method. Global, so that it is verified once. */
__noinline u64 find_method_entry(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(RUBY);
	if (!s)
		return 0;
	struct ef_ruby_state *w = &s->runtimes.ruby;

	for (u32 i = 0; i < RUBY_MAX_ENVIRONMENTS; i++) {
		u64 entry = w->env[0];
		u32 kind = ruby_kind(entry);
		if (kind == RUBY_KIND_ENTRY)
			return entry;
		if (w->env[2] & RUBY_FLAG_LOCAL) {
			if (kind != RUBY_KIND_VARIABLES || RUBY_READ(&entry, 8, entry + 8))
				return 0;
			return ruby_kind(entry) == RUBY_KIND_ENTRY ? entry : 0;
		}
		u64 around = w->env[1] & ~3ULL;
		if (RUBY_READ(w->env, sizeof(w->env), around - 16))
			return 0;
	}
	count(EF_COUNTER_ruby_bad_frame);
	return 0;
}

static __always_inline void push_c_function(struct ef_scratch *s)
{
	u64 entry = find_method_entry();

	if (!entry || entry >= USER_ADDRESS_END)
		return;
	push_ruby(s, 0, ruby_cookie(RUBY_WORD(entry + RUBY_ENTRY_DEFINITION), 0), entry, EF_RUBY_C);
}

static __always_inline int push_iseq(struct ef_scratch *s, const struct ef_ruby_state *w)
{
	u64 iseq = w->words[2];
	u64 body = RUBY_WORD(iseq + RUBY_ISEQ_BODY), label = RUBY_WORD(body + RUBY_BODY_LABEL);
	u64 position = (w->words[0] - RUBY_WORD(body + RUBY_BODY_CODE)) / 8;

	if (!body || !label)
		return RUBY_END;
	u64 entry = w->file.has_classes ? find_method_entry() : 0;
	if (!w->words[0] || position >= EF_RUBY_UNKNOWN)
		position = EF_RUBY_UNKNOWN;
	if (entry >= USER_ADDRESS_END)
		entry = 0;
	push_ruby(s, iseq, ruby_cookie(body, label), entry, position);
	return RUBY_NEXT;
}

/* What is left are frames of functions that are written in C, as where a fiber begins with one: no native frame of Ruby's is
 * further out to take them. */
static __always_inline bool are_last_of_c(const struct ef_ruby_state *w)
{
	u64 at = w->frame;

	for (u32 i = 0; i < RUBY_MAX_LAST; i++) {
		u64 ep = 0, flags = 0;
		if (at > w->last)
			return 1;
		if (RUBY_READ(&ep, 8, at + 32) || RUBY_READ(&flags, 8, ep))
			return 0;
		u32 magic = flags & RUBY_MAGIC_MASK;
		if (magic != RUBY_MAGIC_C && magic != RUBY_MAGIC_C_BLOCK && magic != RUBY_MAGIC_DUMMY)
			return 0;
		at += w->file.frame_bytes;
	}
	return 0;
}

/* Takes the next frame. Global, so that it is verified once. */
__noinline int take_ruby_frame(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(RUBY);
	if (!s)
		return RUBY_END;
	struct ef_ruby_state *w = &s->runtimes.ruby;
	u64 at = w->frame;

	if (!at || at > w->last || RUBY_READ(w->words, sizeof(w->words), at))
		return RUBY_END;
	w->frame = at + w->file.frame_bytes;
	if (RUBY_READ(w->env, sizeof(w->env), w->words[4] - 16))
		return RUBY_END;
	u64 iseq = w->words[2];
	u32 flags = w->env[2], magic = flags & RUBY_MAGIC_MASK;
	if (magic == RUBY_MAGIC_C) {
		push_c_function(s);
		return RUBY_NEXT;
	}
	/* a block that is written in C is its native frame */
	if (magic == RUBY_MAGIC_C_BLOCK || magic == RUBY_MAGIC_DUMMY || !iseq)
		return RUBY_NEXT;
	if (iseq & 7 || iseq >= USER_ADDRESS_END) {
		count(EF_COUNTER_ruby_bad_frame);
		return RUBY_END;
	}
	if (push_iseq(s, w))
		return RUBY_END;
	return flags & RUBY_FLAG_FINISH && !are_last_of_c(w) ? RUBY_RUN_OVER : RUBY_NEXT;
}

/* As unwind_steps(). */
__noinline int take_ruby_frames(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(RUBY);
	if (!s)
		return RUBY_END;
	for (u32 i = 0; i < FRAMES_AT_A_TIME; i++) {
		if (s->state.user_frames >= config.max_user_frames)
			return RUBY_END;
		int result = take_ruby_frame();
		if (result != RUBY_NEXT)
			return result;
	}
	return RUBY_NEXT;
}

static __always_inline void take_ruby_run(struct ef_ruby_state *w)
{
	for (u32 i = 0; i < EF_MAX_USER_FRAMES / FRAMES_AT_A_TIME + 1; i++) {
		int result = take_ruby_frames();
		if (result == RUBY_RUN_OVER)
			return;
		if (result == RUBY_END)
			break;
	}
	w->frame = 0;
}

static __always_inline bool is_in(const struct ef_ruby_range *range, u64 offset)
{
	return offset - range->start < range->length;
}

static __always_inline bool is_code_of(struct ef_scratch *s, u64 address, u64 key)
{
	int slot = find_mapping(s, address);

	OPAQUE(slot);
	return slot >= 0 && s->mappings[slot & (EF_MAPPINGS - 1)].key == key;
}

/* From code of the JIT to what has called it: a function of Ruby's. */
static __always_inline int leave_ruby_jit(struct ef_scratch *s, struct ef_ruby_state *w)
{
	u64 key = s->runtime_files[EF_RUNTIME_RUBY], delta = s->runtime_deltas[EF_RUNTIME_RUBY];

	if (!delta || (w->key != key && load_ruby(w, key)) || RUBY_READ(w->jit, sizeof(w->jit), s->state.sp))
		return 0;
	for (u32 i = 0; i < RUBY_JIT_WORDS; i++) {
		u64 address = w->jit[i];
		if (address + delta >= RUBY_FILE_BYTES || !is_code_of(s, address - 1, key))
			continue;
		s->state.pc = address;
		s->state.sp += (i + 1) * 8;
		/* arm64: a pair, of which the first leads to the caller's */
		if (!RETURN_ADDRESS_ON_STACK && i)
			s->state.fp = w->jit[(i - 1) & (RUBY_JIT_WORDS - 1)];
		return 1;
	}
	return 0;
}

/* Pushes the Ruby frames that belong to the native frame at s->state.pc, if that is one that runs them, and returns 0: the
 * native frame follows. Of the JIT's code there is none: 1. */
__noinline int unwind_ruby(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(RUBY);
	if (!s)
		return 0;
	struct ef_ruby_state *w = &s->runtimes.ruby;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];

	if (begins_in_sample(s, EF_RUNTIME_RUBY))
		w->key = 0;
	if (!m->key)
		return leave_ruby_jit(s, w);
	if (w->key != m->key && load_ruby(w, m->key))
		return 0;
	bool is_core = is_in(&w->file.core, s->table_offset);
	if (!is_core && !is_in(&w->file.loop, s->table_offset))
		return 0;
	bool is_known = !is_core && w->has_run;
	w->has_run = is_core;
	if (is_known)
		return 0;
	if (!w->has_begun)
		begin_ruby(m->delta);
	if (w->frame)
		take_ruby_run(w);
	return 0;
}

#endif
