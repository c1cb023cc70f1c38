/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The PHP unwinder (Zend Engine). All PHP functions that call one another run in one native frame of execute_ex; where C
 * calls back into PHP (array_map, an autoloader, a destructor) there is another. Who called whom is a list:
 *
 *   EG(current_execute_data) -> zend_execute_data -> prev_execute_data -> ...
 *
 * In builds with threads (ZTS) each thread has executor_globals of its own, at a distance from its entry of TSRM's that is the
 * same for all of them, and a pthread key leads to the entry.
 *
 * The native unwinder asks here at each frame of execute_ex. The functions that this run of it executes go into the trace
 * before (leaf side of) its own native frame. A flag of the frame (ZEND_CALL_TOP) says that it was called from C and
 * so ends the run. Functions that are written in C are in the list as well, with native frames of their own; C calls
 * them without execute_ex, so that the flag ends nothing there.
 *
 * Of generators that delegate (yield from) the innermost one alone is in the list; the others hang on a frame without a
 * function that leads to the outermost one, and each of them leads to the next one inwards.
 *
 * A fiber has a native stack of its own, but its list leads on to whoever has resumed it, by way of a frame whose function
 * has no name. What is behind that runs in no native frame of this stack: all of it is taken with the fiber's last run.
 *
 * Code of the JIT is jumped to from execute_ex and runs in its native frame: there the unwinder goes back to behind that
 * jump, where the unwind information of execute_ex holds. The JIT's memory is shared (all workers of a server have it),
 * which tells it from that of PCRE's JIT, whose functions are called.
 */
#ifndef EF_PHP_H
#define EF_PHP_H

#include "../cookie.h"
#include "../unwind-frame.h"

/* zend_function.type: ZEND_INTERNAL_FUNCTION, ZEND_USER_FUNCTION, ZEND_EVAL_CODE */
#define PHP_INTERNAL 1
#define PHP_USER 2
#define PHP_EVAL 4
/* ZEND_CALL_TOP, in the upper half of This */
#define PHP_CALL_TOP (1U << 17)
#define PHP_MAX_LINE (1U << 30)
/* zval's type of an object */
#define PHP_OBJECT 8
/* tsrm_tls_entry.thread_id */
#define PHP_ENTRY_THREAD 16
#define PHP_ENTRY_BYTES 32
/* All that the engine keeps behind an entry takes some kilobytes. */
#define PHP_MAX_OFFSET (1U << 20)
/* PTHREAD_KEYS_MAX of glibc is 1,024, of musl 128 */
#define PHP_MAX_KEY 1023

enum php_result {
	PHP_NEXT = 0, /* a frame was pushed and belongs to the same run as the next one */
	PHP_RUN_OVER = 1,
	PHP_END = 2, /* no frame is left, or what follows can't be trusted */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, struct ef_php);
} php_files SEC(".maps");

#define PHP_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_php_read_failed)
#define PHP_WORD(address) user_word((address), EF_COUNTER_php_read_failed)

static __always_inline int load_php(struct ef_php_state *w, u64 key)
{
	struct ef_php *file = bpf_map_lookup_elem(&php_files, &key);
	if (!file)
		return 1;
	w->file = *file;
	w->key = key;
	w->has_begun = w->is_leaf = w->is_outside = w->delegate_count = 0;
	w->frame = 0;
	return 0;
}

/* The thread's EG(current_execute_data) in a build with threads; 0: it has none. */
static __always_inline u64 php_thread_frame(const struct ef_php *file, u64 delta)
{
	u64 at = file->globals_offset - delta, tp = thread_pointer();
	u32 key = 0;

	if (file->is_slot)
		at = PHP_WORD(at);
	u64 offset = PHP_WORD(at);
	if (PHP_READ(&key, 4, file->thread_key - delta))
		return 0;
	u64 entry = key <= PHP_MAX_KEY ? thread_specific(tp, key, file->is_musl, EF_COUNTER_php_read_failed) : 0;
	/* the entry says whose it is */
	if (!entry || offset < PHP_ENTRY_BYTES || offset >= PHP_MAX_OFFSET ||
	    tp - PHP_WORD(entry + PHP_ENTRY_THREAD) >= THREAD_BYTES) {
		count(EF_COUNTER_php_no_globals);
		return 0;
	}
	return PHP_WORD(entry + offset + file->current);
}

/* Must equal functionCookie() of php/functions.ts. */
static __always_inline u32 php_cookie(const struct ef_php_state *w)
{
	return cookie_of_4_words(w->function[1], w->function[2], w->place[0], w->place[1]);
}

static __always_inline u32 line_at(u64 instruction)
{
	u32 line = 0;

	/* a function that is being called has none yet, or what an earlier one has left */
	if (instruction < 4096 || PHP_READ(&line, 4, instruction + 24) || line >= PHP_MAX_LINE)
		return 0;
	return line;
}

/* The frame's own instruction is written back before calls only. */
static __always_inline u32 php_line(const struct ef_scratch *s, const struct ef_php_state *w)
{
	u32 first = (u32)w->place[1], last = w->place[1] >> 32;

	if (w->is_leaf && w->file.has_line_register) {
		u32 line = line_at(s->state.leaf.by_dwarf_number[REG_PHP_INSTRUCTION]);
		if (line >= first && line <= last && line)
			return line;
	}
	return line_at(w->execute[0]);
}

static __always_inline void push_php(struct ef_scratch *s, const struct ef_php_state *w, u32 line)
{
	push_word(s, FRAME_WORD(EF_FRAME_PHP, w->execute[3]));
	push_word(s, (u64)line << 32 | php_cookie(w));
	/* a function's address means something in this process only */
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
}

static __always_inline bool is_fiber_bottom(u64 frame)
{
	u64 function = frame ? PHP_WORD(frame + 24) : 0;
	u64 head[2] = { 0, 1 };

	return function && !PHP_READ(head, sizeof(head), function) && (u8)head[0] == PHP_INTERNAL && !head[1];
}

/* The generators that delegate to the one that runs, the outermost first. */
static __always_inline void note_delegates(struct ef_php_state *w)
{
	u64 generator = w->execute[4];

	w->delegate_count = 0;
	if ((u8)w->execute[5] != PHP_OBJECT)
		return;
	for (u32 i = 0; i < PHP_MAX_DELEGATES; i++) {
		u64 inner = PHP_WORD(generator + w->file.generator_inner);
		if (!inner)
			return;
		w->delegates[i] = PHP_WORD(generator + w->file.generator_frame);
		w->delegate_count = i + 1;
		generator = inner;
	}
}

/* Reads the next frame. */
static __always_inline int next_php_frame(struct ef_php_state *w)
{
	u64 at = w->frame;

	w->is_delegate = w->delegate_count > 0;
	if (w->is_delegate)
		at = w->delegates[--w->delegate_count & (PHP_MAX_DELEGATES - 1)];
	if (at < 4096 || at >= USER_ADDRESS_END || PHP_READ(w->execute, sizeof(w->execute), at))
		return PHP_END;
	if (!w->is_delegate)
		w->frame = w->execute[6];
	return PHP_NEXT;
}

/* Reads the function of w->execute. */
static __always_inline int read_php_function(struct ef_php_state *w)
{
	u64 function = w->execute[3];

	w->place[0] = w->place[1] = 0;
	if (function >= USER_ADDRESS_END || PHP_READ(w->function, sizeof(w->function), function))
		return PHP_END;
	u8 type = w->function[0];
	if (type == PHP_INTERNAL)
		return PHP_NEXT;
	if (type == PHP_USER || type == PHP_EVAL)
		return PHP_READ(w->place, sizeof(w->place), function + w->file.function_file) ? PHP_END :
												PHP_NEXT;
	count(EF_COUNTER_php_not_function);
	return PHP_END;
}

/* Takes the frame at the head of the list. Global, so that it is verified once. */
__noinline int take_php_frame(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PHP);
	if (!s)
		return PHP_END;
	struct ef_php_state *w = &s->runtimes.php;

	if (next_php_frame(w))
		return PHP_END;
	if (!w->execute[3]) {
		note_delegates(w);
		return PHP_NEXT;
	}
	if (read_php_function(w))
		return PHP_END;
	if ((u8)w->function[0] == PHP_INTERNAL) {
		if (w->function[1])
			push_php(s, w, 0);
		else
			w->is_outside = 1;
		return PHP_NEXT;
	}
	push_php(s, w, php_line(s, w));
	w->is_leaf = 0;
	bool ends = (u32)w->execute[5] & PHP_CALL_TOP && !w->is_delegate && !w->is_outside;
	return ends && !is_fiber_bottom(w->frame) ? PHP_RUN_OVER : PHP_NEXT;
}

/* As unwind_steps(). */
__noinline int take_php_frames(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PHP);
	if (!s)
		return PHP_END;
	for (u32 i = 0; i < FRAMES_AT_A_TIME; i++) {
		if (s->state.user_frames >= config.max_user_frames)
			return PHP_END;
		int result = take_php_frame();
		if (result != PHP_NEXT)
			return result;
	}
	return PHP_NEXT;
}

static __always_inline void take_php_run(struct ef_php_state *w)
{
	for (u32 i = 0; i < EF_MAX_USER_FRAMES / FRAMES_AT_A_TIME + 1; i++) {
		int result = take_php_frames();
		if (result == PHP_RUN_OVER)
			return;
		if (result == PHP_END)
			break;
	}
	w->frame = 0;
}

/* From code of the JIT to the place in execute_ex in whose frame it runs. */
static __always_inline int leave_jit(struct ef_scratch *s, struct ef_php_state *w, const struct ef_mapping *m)
{
	u64 key = s->runtime_files[EF_RUNTIME_PHP], delta = s->runtime_deltas[EF_RUNTIME_PHP];

	if (!m->is_shared || !delta || (w->key != key && load_php(w, key)) || !w->file.resume)
		return 0;
	/* the registers are the JIT's */
	s->is_leaf = 0;
	s->state.pc = w->file.resume - delta;
	return 1;
}

/* Pushes the PHP frames that belong to the native frame at s->state.pc, if that is one of execute_ex, and returns 0: the
 * native frame follows. Of the JIT's code there is none: 1. */
__noinline int unwind_php(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PHP);
	if (!s)
		return 0;
	struct ef_php_state *w = &s->runtimes.php;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];

	if (begins_in_sample(s, EF_RUNTIME_PHP))
		w->key = 0;
	if (!m->key)
		return leave_jit(s, w, m);
	if (w->key != m->key && load_php(w, m->key))
		return 0;
	if (s->table_offset - w->file.loop_start >= w->file.loop_length)
		return 0;
	if (!w->has_begun) {
		w->has_begun = 1;
		w->is_leaf = s->is_leaf;
		w->frame = w->file.has_threads ? php_thread_frame(&w->file, m->delta) :
						 PHP_WORD(w->file.current - m->delta);
	}
	if (w->frame)
		take_php_run(w);
	return 0;
}

#endif
