/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The BEAM unwinder: Erlang, Elixir. Code of modules is compiled as they are loaded (BeamAsm). It runs on the stack of the
 * Erlang process, a piece of that process's heap, with the stack pointer as usual:
 *
 *   sp -> variables, return address -> the caller's variables, return address -> ... -> end of the heap
 *
 * Variables are tagged: the lower two bits of a return address are 0, those of a variable are not, and calls are aligned for
 * that. So a frame needs no size: the next word that is an address in a module is where it goes back to. Others may have
 * those bits, such as frame pointers with +JPperf. Code that all modules share is called without being aligned.
 *
 * C is called on the stack of the scheduler's thread. Where the native unwinder comes from there to code of the JIT, the
 * Erlang stack is where that code will take it from again: the process (c_p->stop), or the register in which it was kept.
 *
 *   pthread key -> ErtsSchedulerData -> Process: htop, stop, hend
 *
 * Threads for functions of C that take long ("dirty" schedulers) run those alone: the Erlang stack belongs to the native frame that
 * calls them. Code that all modules share has no frames in a trace: it is its caller's. Beyond the outermost frame
 * are none: who has spawned a process does not wait for it.
 */
#ifndef EF_BEAM_H
#define EF_BEAM_H

#include "../labels.h"
#include "new-frames.h"

#if HAS_BEAM

/* Process: stop */
#define BEAM_PROCESS_STACK 0x58
/* Process: before heap, hend, abandoned_heap, heap_sz */
#define BEAM_PROCESS_HEAP 0x70
/* log2 of the most bytes that a process's memory apart from its heap may have */
#define BEAM_APART_BITS 32
/* C's stack ends a little below the scheduler's registers */
#define BEAM_THREAD_STACK (1U << 16)
/* Words of the stack that are looked at in a sample */
#define BEAM_MAX_WORDS (1U << 15)
/* Of those, what code that all modules share has on the stack */
#define BEAM_LOOSE_WORDS 4

enum beam_result {
	BEAM_NEXT = 0,
	BEAM_END = 1,
};

static __always_inline void push_beam(struct ef_scratch *s, struct ef_beam_state *w, u64 address, bool has_module)
{
	u64 cookie = w->cookie & ((1U << EF_BEAM_COOKIE_BITS) - 1);

	push_word(s, FRAME_WORD(EF_FRAME_BEAM, address));
	push_word(s, has_module ? (w->module.start >> 3) << EF_BEAM_COOKIE_BITS | cookie : 0);
	/* addresses of code mean something in this process only */
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
}

/* mov stop(%r13),%rax, or to any other register */
#define BEAM_READS_STACK (0x458b49 | (u32)BEAM_PROCESS_STACK << 24)
#define BEAM_ANY_REGISTER 0xffc7fffb

/* Where the code behind a call of C, or the leaf that runs there, takes the Erlang stack from again: the process, or
 * mov %rbp,%rsp. 0: it is not known. What asks for the next process, mov %rax,%r13, has it all from there. */
static __always_inline u64 stack_after_call(struct ef_scratch *s, struct ef_beam_state *w, u64 stop)
{
	u32 code = 0;

	if (BEAM_READ(w->code, BEAM_CODE_BYTES, s->state.pc))
		return 0;
	if (s->is_return_address && w->code[0] == 0x49 && w->code[1] == 0x89 && w->code[2] == 0xc5) {
		w->is_waiting = 1;
		return stop;
	}
	for (u32 i = 0; i < BEAM_CODE_BYTES; i++) {
		code = code >> 8 | (u32)w->code[i] << 24;
		if ((code & BEAM_ANY_REGISTER) == BEAM_READS_STACK)
			return stop;
		if ((code & 0xffffff) == 0xec8948)
			return s->state.fp;
	}
	return 0;
}

/* Finds where the stack ends: with the heap that holds it, start, end, abandoned heap and size, which releases have in different
 * places. Where a function of C may not collect garbage, its process goes on in memory apart, and abandons the heap, of
 * which the size still shows. 1: there is none such as long as the heap is being moved. */
static __always_inline int find_beam_heap(struct ef_beam_state *w)
{
	if (BEAM_READ(w->words, sizeof(w->words), w->process + BEAM_PROCESS_HEAP))
		return 1;
	for (u32 i = 0; i < BEAM_WORDS - 3; i++) {
		u64 start = w->words[i], bytes = w->words[i + 1] - start;
		u64 abandoned = w->words[i + 2], size = w->words[i + 3] * 8;
		if (w->at - start > bytes)
			continue;
		if (bytes != size && (!abandoned || abandoned & 7 || !size || (size | bytes) >> BEAM_APART_BITS))
			continue;
		w->end = start + bytes;
		return 0;
	}
	return 1;
}

/* Finds the stack of the Erlang process that the thread runs. `is_dirty`: for all of its functions that are written in C.
 * Global, so that it is verified once. */
__noinline int begin_beam_stack(u32 is_dirty)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(BEAM);
	if (!s)
		return BEAM_END;
	struct ef_beam_state *w = &s->runtimes.beam;
	u64 scheduler =
		thread_specific(thread_pointer(), w->vm.thread_key, w->vm.is_musl, EF_COUNTER_beam_read_failed);
	u64 registers = 0, stop = 0;

	w->at = w->end = w->next_word = 0;
	w->is_waiting = is_dirty;
	if (!scheduler || BEAM_READ(&registers, 8, scheduler) ||
	    BEAM_READ(&w->process, 8, scheduler + w->vm.process))
		return BEAM_END;
	/* between two processes there is none */
	if (!w->process || BEAM_READ(&stop, 8, w->process + BEAM_PROCESS_STACK))
		return BEAM_END;
	if (is_dirty)
		w->at = stop;
	else if (s->is_leaf && registers - s->state.sp > BEAM_THREAD_STACK)
		w->at = s->state.sp;
	else
		w->at = stack_after_call(s, w, stop);
	if (w->at && !find_beam_heap(w))
		return BEAM_NEXT;
	count(EF_COUNTER_beam_no_stack);
	s->state.marker = EF_MARKER_ANON;
	return BEAM_END;
}

/* Reads the next words of the stack, which may end with its memory. */
static __always_inline int read_beam_words(struct ef_beam_state *w)
{
	u64 bytes = w->end - w->at;

	OPAQUE(bytes);
	if (bytes > sizeof(w->words))
		bytes = sizeof(w->words);
	return USER_READ(w->words, bytes, w->at) ? 1 : 0;
}

/* Goes to the next return address into a module. Global, so that it is verified once. */
__noinline int take_beam_frame(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(BEAM);
	if (!s)
		return BEAM_END;
	struct ef_beam_state *w = &s->runtimes.beam;

	for (u32 i = 0; i < BEAM_WORDS; i++) {
		u32 next = w->next_word & (BEAM_WORDS - 1);
		if (w->at >= w->end)
			return BEAM_END;
		if (!next && read_beam_words(w)) {
			s->state.marker = EF_MARKER_STACK_READ;
			return BEAM_END;
		}
		u64 word = w->words[next];
		w->next_word = next + 1;
		w->at += 8;
		if ((word & 3 && !w->loose_words) || !word)
			continue;
		if (w->loose_words)
			w->loose_words--;
		if (!find_beam_module(word - 1)) {
			push_beam(s, w, word - 1, 1);
			w->loose_words = 0;
			if (w->has_top)
				return BEAM_NEXT;
			w->has_top = 1;
			return pass_new_variables(word - BEAM_CALL_BYTES);
		}
	}
	return BEAM_NEXT;
}

/* As unwind_steps(). */
__noinline int take_beam_frames(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(BEAM);
	if (!s)
		return BEAM_END;
	for (u32 i = 0; i < FRAMES_AT_A_TIME; i++) {
		if (s->state.user_frames >= config.max_user_frames) {
			s->state.marker = EF_MARKER_DEPTH;
			return BEAM_END;
		}
		if (take_beam_frame())
			return BEAM_END;
	}
	return BEAM_NEXT;
}

/* What waits for its turn, or for a function of C on another thread, has put its own place aside. Global, so that it is
 * verified once. */
__noinline int take_beam_place(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(BEAM);
	if (!s)
		return 0;
	struct ef_beam_state *w = &s->runtimes.beam;
	u64 place = 0;

	if (w->vm.resumed && !BEAM_READ(&place, 8, w->process + w->vm.resumed) && place &&
	    !find_beam_module(place))
		push_beam(s, w, place, 1);
	return 0;
}

static __always_inline void take_beam_stack(struct ef_scratch *s, struct ef_beam_state *w, u32 is_dirty)
{
	int result = begin_beam_stack(is_dirty);

	if (w->is_waiting && !result)
		take_beam_place();
	if (w->has_top && !result)
		result = pass_new_variables(s->state.pc - (s->is_return_address ? BEAM_CALL_BYTES : 0));
	for (u32 i = 0; i < BEAM_MAX_WORDS / BEAM_WORDS / FRAMES_AT_A_TIME && !result; i++)
		result = take_beam_frames();
	if (!result)
		s->state.marker = EF_MARKER_DEPTH;
}

/* Pushes the Erlang frames in place of the native one, if that is of the JIT's code, and ends the stack. Global, so that it is
 * verified once. */
__noinline int unwind_beam(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(BEAM);
	if (!s)
		return 0;
	struct ef_beam_state *w = &s->runtimes.beam;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	u64 address = s->state.pc - s->is_return_address;

	if (begins_in_sample(s, EF_RUNTIME_BEAM))
		w->is_looked_up = w->process = w->is_unread = 0;
	if (!w->is_looked_up)
		look_vm_up(s, w, m);
	if (!w->vm.attachment.is_attached)
		return 0;
	if (m->key) {
		if (s->table_offset - w->vm.dirty_start < w->vm.dirty_bytes) {
			w->code_length = w->loose_words = 0;
			w->has_top = 0;
			take_beam_stack(s, w, 1);
		}
		return 0;
	}
	w->code_start = m->start;
	w->code_length = m->length;
	w->loose_words = BEAM_LOOSE_WORDS;
	w->has_top = !find_beam_module(address);
	if (w->has_top) {
		w->loose_words = 0;
		push_beam(s, w, address, 1);
	}
	s->state.runtime_file = w->vm.attachment.file_key;
	if (w->is_unread)
		s->state.marker = EF_MARKER_STACK_READ;
	else
		take_beam_stack(s, w, 0);
	s->state.pc = 0;
	if (!s->state.user_frames)
		push_beam(s, w, address, 0);
	return 1;
}

#define BEAM_WORD(address) user_word((address), EF_COUNTER_beam_read_failed)
/* IndexTable: pointers to pieces of 1,024 atoms; Atom: length and name; ErlHeapBits: bytes; RegProc: name */
#define BEAM_ATOM_SEGMENTS 120
#define BEAM_SEGMENT_BITS 10
#define BEAM_ATOM_LENGTH 24
#define BEAM_NAME_BYTES 16
#define BEAM_REGISTERED_NAME 32
#define BEAM_ATOM_TAG 0x0b

static __always_inline void take_beam_name(struct ef_beam_state *w)
{
	u64 registered = BEAM_WORD(w->process + w->vm.registered);
	u64 name = registered ? BEAM_WORD(registered + BEAM_REGISTERED_NAME) : 0;
	u64 index = name >> 6, atom[2] = {};

	if ((name & 63) != BEAM_ATOM_TAG)
		return;
	u64 segment = BEAM_WORD(BEAM_WORD(w->vm.atoms + BEAM_ATOM_SEGMENTS) + (index >> BEAM_SEGMENT_BITS) * 8);
	u64 at = BEAM_WORD(segment + (index & ((1 << BEAM_SEGMENT_BITS) - 1)) * 8);
	if (!at || BEAM_READ(atom, sizeof(atom), at + BEAM_ATOM_LENGTH) || !(u16)atom[0])
		return;
	add_label(EF_LABEL_BEAM_NAME, 0, 0, w->vm.has_name_terms ? (atom[1] & ~3ULL) + BEAM_NAME_BYTES : atom[1],
		  (u16)atom[0]);
}

/* What the Erlang process is called that runs. Global, so that it is verified once. */
__noinline int take_beam_labels(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(BEAM);
	if (!s)
		return 0;
	struct ef_beam_state *w = &s->runtimes.beam;

	if (!w->process)
		return 0;
	if (config.goroutine_ids)
		add_number_label(s, EF_LABEL_BEAM_PROCESS, BEAM_WORD(w->process));
	if (w->vm.registered)
		take_beam_name(w);
	return 0;
}

#else

__noinline int take_beam_labels(void)
{
	return 0;
}

__noinline int unwind_beam(u32 slot)
{
	OPAQUE(slot);
	return 0;
}

#endif
#endif
