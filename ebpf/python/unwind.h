/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The CPython unwinder. Python functions run inside native frames of the interpreter loop,
 * _PyEval_EvalFrameDefault; which ones, CPython keeps in a list of frames that starts at the thread state:
 *
 *   thread pointer -> thread state -> innermost frame -> the frame that called it -> ...
 *
 * The native unwinder asks here at each frame of the loop. The frames that this run of the loop executes go into
 * the trace before (leaf side of) the loop's own native frame; the rest waits for the next one. So Python and
 * native frames alternate as they were called, through callbacks and C extensions.
 *
 * Where a run ends:  up to 3.10 a run executes one frame. In 3.11 a byte of the frame says that it began a run.
 * From 3.12 on a frame without a function stands below the first one of each run (owner "C stack").
 *
 * A sample may fall between the call of the loop and the moment at which it enters its frame into the list, or
 * after it left it. Both the list's links into the C stack (the cframe of 3.10 to 3.12, the extra frame from 3.13
 * on) are local variables of the loop, so they say which native frame they belong to: only frames whose link lies
 * below this native frame's end (its CFA) are its own.
 *
 * A subinterpreter has a thread state of its own. While a thread runs in it nothing leads from there to the frames of
 * the interpreter that called it: they hang on another state with this thread's number, which is looked for among the
 * threads of all interpreters of the process.
 *
 * Nothing of this needs a process to be registered: all offsets and addresses are known by file.
 */
#ifndef EF_PYTHON_H
#define EF_PYTHON_H

#include "../cookie.h"
#include "../unwind-frame.h"

#define PYTHON_MAX_BYTES 192
/* owner of a frame that belongs to no function: 3 and, in 3.14, 4 (enum _frameowner) */
#define PYTHON_OWNER_C_STACK 3
/* Steps along the lists of interpreters and threads on the way to each of a thread's states. */
#define PYTHON_MAX_SEARCH 64
/* "code" and its NUL */
#define PYTHON_CODE_NAME 0x0000000065646f63ULL
#define FIVE_BYTES 0xffffffffffULL

enum python_result {
	PYTHON_NEXT = 0, /* a frame was pushed and belongs to the same run as the next one */
	PYTHON_RUN_OVER = 1,
	PYTHON_END = 2, /* no frame is left, or what follows can't be trusted */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u64);
	__type(value, struct ef_python);
} python_files SEC(".maps");

/* Copies the file's entry: every native frame in the interpreter's file asks for it, and every Python frame. */
static __always_inline int load_python(struct ef_python_state *w, u64 key)
{
	struct ef_python *file = bpf_map_lookup_elem(&python_files, &key);
	if (!file)
		return 1;
	w->file = *file;
	w->key = key;
	w->has_begun = w->frame = w->cframe = w->kept_frame = w->kept_link = 0;
	w->state_count = w->has_all_states = 0;
	return 0;
}

#define PYTHON_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_python_read_failed)
#define PYTHON_WORD(address) user_word((address), EF_COUNTER_python_read_failed)

/* `delta` is that of the mapping: address + delta = offset in the file. */
static __always_inline u64 read_thread_state(const struct ef_python *py, const struct ef_python_access *access,
					     u64 tp, u64 delta)
{
	u64 words[2] = {};

	switch (access->kind) {
	case EF_PYTHON_KEY:
		/* int is_initialized; pthread_key_t key: the number alone says nothing before it is set */
		PYTHON_READ(words, 8, access->at - delta - 4);
		if (py->has_key_flag && !(u32)words[0])
			return 0;
		return (words[0] >> 32) < 1024 ?
			       thread_specific(tp, words[0] >> 32, py->is_musl, EF_COUNTER_python_read_failed) :
			       0;
	case EF_PYTHON_OFFSET:
		return PYTHON_WORD(tp + access->at);
	case EF_PYTHON_MODULE:
		/* module ID and offset, which the loader has filled in; then the thread's vector of modules */
		if (PYTHON_READ(words, 16, access->at - delta))
			return 0;
		return thread_local_word(tp, words, access->add, py->is_musl, EF_COUNTER_python_read_failed);
	case EF_PYTHON_DESCRIPTOR:
		return described_word(tp, access->at - delta, access->add, py->is_musl,
				      EF_COUNTER_python_read_failed);
	case EF_PYTHON_GLOBAL:
		/* thread_id is pthread_self(); no other thread's begins as close to this one's end */
		words[0] = PYTHON_WORD(access->at - delta);
		return words[0] && tp - PYTHON_WORD(words[0] + py->thread_id) < THREAD_BYTES ? words[0] : 0;
	default:
		return 0;
	}
}

static __always_inline void enter_thread_state(struct ef_python_state *w, const struct ef_python *py, u64 thread)
{
	w->states[w->state_count++ & (PYTHON_MAX_STATES - 1)] = thread;
	w->base_frame = py->thread_base_frame ? PYTHON_WORD(thread + py->thread_base_frame) : 0;
	w->frame = PYTHON_WORD(thread + py->thread_frame);
	w->cframe = py->thread_cframe ? PYTHON_WORD(thread + py->thread_cframe) : 0;
	if (py->is_frame_in_cframe)
		w->frame = PYTHON_WORD(w->frame + py->cframe_frame);
	if (w->frame == w->base_frame)
		w->frame = 0;
}

/* The first frame of the loop in this stack: finds the thread's list. */
static __always_inline void begin_python(struct ef_python_state *w, u64 delta)
{
	const struct ef_python *py = &w->file;
	u64 tp = thread_pointer();
	u64 current = read_thread_state(py, &py->current, tp, delta);
	u64 bound = read_thread_state(py, &py->bound, tp, delta);

	w->has_begun = 1;
	if (!current && !bound) {
		count(EF_COUNTER_python_no_thread);
		return;
	}
	enter_thread_state(w, py, current ? current : bound);
}

static __always_inline int has_entered(const struct ef_python_state *w, u64 thread)
{
	for (u32 i = 0; i < PYTHON_MAX_STATES; i++)
		if (w->states[i] == thread && i < w->state_count)
			return 1;
	return 0;
}

/* One step along the lists of interpreters and their threads: 0, or 1 where a state of this thread was entered that has
 * frames, or there is none left. Global, so that it is verified once. */
__noinline int search_thread_state(u64 tp)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PYTHON);
	if (!s)
		return 1;
	struct ef_python_state *w = &s->runtimes.python;
	const struct ef_python *py = &w->file;
	u64 thread = w->searched_thread, interpreter = w->searched_interpreter;

	if (!thread && !interpreter)
		return 1;
	if (!thread) {
		w->searched_thread = PYTHON_WORD(interpreter + py->interpreter_threads);
		w->searched_interpreter = PYTHON_WORD(interpreter + py->interpreter_next);
		return 0;
	}
	if (tp - PYTHON_WORD(thread + py->thread_id) < THREAD_BYTES && !has_entered(w, thread)) {
		enter_thread_state(w, py, thread);
		if (w->frame)
			return 1;
	}
	w->searched_thread = PYTHON_WORD(thread + py->thread_next);
	return 0;
}

/* The list of frames has ended and there is another run of the loop in the stack: goes on with another state of this
 * thread, the newest interpreter's first. Its links say whether it belongs here. */
static __always_inline void enter_outer_interpreter(struct ef_python_state *w, u64 delta)
{
	const struct ef_python *py = &w->file;
	u64 tp = thread_pointer(), interpreter = PYTHON_WORD(py->interpreters - delta);

	w->searched_thread = 0;
	/* nearly every process has one alone */
	w->searched_interpreter = PYTHON_WORD(interpreter + py->interpreter_next) ? interpreter : 0;
	for (u32 i = 0; i < PYTHON_MAX_SEARCH && w->state_count < PYTHON_MAX_STATES; i++)
		if (search_thread_state(tp))
			break;
	if (!w->frame)
		w->has_all_states = 1;
}

/* A code object's type is PyCode_Type. A program that has a copy of that variable (a copy relocation) makes the
 * address another one than the library's; the type's name is still the same. */
static __always_inline int is_code_type(const struct ef_python *py, u64 type, u64 delta)
{
	if (type == py->code_type - delta)
		return 1;
	return (PYTHON_WORD(PYTHON_WORD(type + 24)) & FIVE_BYTES) == PYTHON_CODE_NAME;
}

#define WORD_AT(bytes, at) (*(u64 *)((bytes) + ((at)&0xf8)))
#define HALF_AT(bytes, at) (*(u32 *)((bytes) + ((at)&0xfc)))

/* Must equal codeCookie() of python/code-object.ts. */
static __always_inline u32 code_cookie(const struct ef_python *py, const u8 *code)
{
	u64 place = (u64)HALF_AT(code, py->code_flags) << 32 | HALF_AT(code, py->code_first_line);

	return cookie_of_4_words(place, WORD_AT(code, py->code_filename), WORD_AT(code, py->code_name),
				 WORD_AT(code, py->code_line_table));
}

/* Offset of the instruction in bytes; -1 where the frame has not begun. */
static __always_inline u32 instruction_offset(const struct ef_python *py, const u8 *frame, u64 code)
{
	s32 index = (s32)HALF_AT(frame, py->frame_instruction);

	if (py->instruction == EF_PYTHON_BYTES)
		return index;
	if (py->instruction == EF_PYTHON_UNITS)
		return index < 0 ? -1 : index * 2;
	u64 start = code + py->code_start;
	if (py->code_thread_local) {
		/* free-threaded: the thread's copy of the code, entry `index` of {size, entries[]} */
		u64 copies = PYTHON_WORD(code + py->code_thread_local);
		u64 copy = PYTHON_WORD(copies + 8 + HALF_AT(frame, py->frame_thread_local_index) * 8ULL);
		if (copy)
			start = copy;
	}
	u64 offset = WORD_AT(frame, py->frame_instruction) - start;
	return offset < 1 << 28 ? offset : -1;
}

/* Takes the frame at the head of the list. Global, so that it is verified once. */
__noinline int take_python_frame(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PYTHON);
	if (!s)
		return PYTHON_END;
	struct ef_python_state *w = &s->runtimes.python;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	struct ef_python *py = &w->file;
	u64 at = w->frame;

	if (!at || at >= USER_ADDRESS_END)
		return PYTHON_END;
	u32 bytes = py->frame_bytes, code_bytes = py->code_bytes;
	if (bytes > PYTHON_MAX_BYTES || code_bytes > PYTHON_MAX_BYTES)
		return PYTHON_END;
	if (PYTHON_READ(w->bytes, bytes, at))
		return PYTHON_END;
	u32 boundary = w->bytes[py->frame_boundary];
	u64 code = WORD_AT(w->bytes, py->frame_code) & ~(u64)py->code_tag_mask;
	u64 previous = WORD_AT(w->bytes, py->frame_previous);
	if (py->boundary == EF_PYTHON_OWNER && boundary >= PYTHON_OWNER_C_STACK) {
		w->link = at;
		w->frame = previous;
		return PYTHON_RUN_OVER;
	}
	if (!code || code >= USER_ADDRESS_END) {
		count(EF_COUNTER_python_not_code);
		return PYTHON_END;
	}
	if (PYTHON_READ(w->code, code_bytes, code))
		return PYTHON_END;
	if (!is_code_type(py, WORD_AT(w->code, py->object_type), m->delta)) {
		count(EF_COUNTER_python_not_code);
		return PYTHON_END;
	}
	u64 offset = instruction_offset(py, w->bytes, code);
	push_word(s, FRAME_WORD(EF_FRAME_PYTHON, code));
	push_word(s, offset << 32 | code_cookie(py, w->code));
	/* a code object's address means something in this process only */
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
	w->frame = previous;
	if (py->boundary == EF_PYTHON_EACH || (py->boundary == EF_PYTHON_ENTRY && boundary))
		return PYTHON_RUN_OVER;
	return PYTHON_NEXT;
}

/* As unwind_steps(). */
__noinline int take_python_frames(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PYTHON);
	if (!s)
		return PYTHON_END;
	for (u32 i = 0; i < FRAMES_AT_A_TIME; i++) {
		if (s->state.user_frames >= config.max_user_frames)
			return PYTHON_END;
		int result = take_python_frame(slot);
		if (result != PYTHON_NEXT)
			return result;
	}
	return PYTHON_NEXT;
}

/* Takes the frames of one run of the loop. */
static __always_inline int take_run(u32 slot)
{
	for (u32 i = 0; i < EF_MAX_USER_FRAMES / FRAMES_AT_A_TIME + 1; i++) {
		int result = take_python_frames(slot);
		if (result != PYTHON_NEXT)
			return result;
	}
	return PYTHON_END;
}

/* Where this native frame ends; 0 if that is not known, and then no frame of the list is refused. */
static __always_inline u64 native_frame_end(struct ef_scratch *s, u32 slot)
{
	u64 cfa = 0;
	if (find_rule(slot) || compute_cfa(s, &s->rule, &cfa))
		return 0;
	return cfa;
}

static __always_inline int is_in_loop(const struct ef_python *py, u64 file_offset)
{
	for (int i = 0; i < EF_PYTHON_RANGES; i++)
		if (file_offset - py->ranges[i].start < py->ranges[i].length)
			return 1;
	return 0;
}

/* Pushes the Python frames that belong to the native frame at s->state.pc, if that is one of the interpreter loop. Returns
 * 0: the native frame follows. */
__noinline int unwind_python(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PYTHON);
	if (!s)
		return 0;
	struct ef_python_state *w = &s->runtimes.python;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	struct ef_python *py = &w->file;

	if (begins_in_sample(s, EF_RUNTIME_PYTHON))
		w->key = 0;
	if (w->key != m->key && load_python(w, m->key))
		return 0;
	if (!is_in_loop(py, s->table_offset))
		return 0;
	if (!w->has_begun)
		begin_python(w, m->delta);
	else if (!w->frame && w->state_count && !w->has_all_states && py->interpreters)
		enter_outer_interpreter(w, m->delta);
	if (!w->frame)
		return 0;
	u64 end = native_frame_end(s, slot);
	if (py->thread_cframe && end && w->cframe >= end)
		return 0; /* not entered yet, or left already */
	if (end && w->frame == w->kept_frame && w->kept_link >= end)
		return 0; /* found out before: each frame on the way would walk all of it again */
	u64 hash = s->state.hash, frame = w->frame;
	u32 words = s->state.words, frames = s->state.user_frames;
	w->link = 0;
	if (take_run(slot) == PYTHON_END) {
		w->frame = 0;
		return 0;
	}
	if (py->thread_cframe)
		w->cframe = PYTHON_WORD(w->cframe + py->cframe_previous);
	else if (end && w->link >= end) {
		/* these belong to a frame further out: put them back */
		s->state.hash = hash;
		s->state.words = words;
		s->state.user_frames = frames;
		w->frame = w->kept_frame = frame;
		w->kept_link = w->link;
	}
	if (w->frame == w->base_frame)
		w->frame = 0;
	return 0;
}

#endif
