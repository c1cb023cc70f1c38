/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The BEAM unwinder: Erlang, Elixir. Code of modules is compiled as they are loaded (BeamAsm). It runs on the stack of the
 * Erlang process, a piece of that process's heap, with a register that points to it (x86-64: the stack pointer):
 *
 *   register -> variables, return address -> the caller's variables, return address -> ... -> end of the heap
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

/* Process: before heap, hend, abandoned_heap, heap_sz */
#define BEAM_PROCESS_HEAP 0x70
/* log2 of the most bytes that a process's memory apart from its heap may have */
#define BEAM_APART_BITS 32
/* Words of the stack that are looked at in a sample */
#define BEAM_MAX_WORDS (1U << 15)

enum beam_result {
	BEAM_NEXT = 0,
	BEAM_END = 1,
};

/* Finds where the stack ends: with the heap that holds it, start, end, abandoned heap and size, which releases have in different
 * places. Where a function of C may not collect garbage, its process goes on in memory apart, and abandons the heap, of
 * which the size still shows. 1: there is none such as long as the heap is being moved. `stop`: where the process has its stack
 * if another one's is in the register. */
static __always_inline int find_beam_heap(struct ef_beam_state *w, u64 stop)
{
	if (BEAM_READ(w->words, sizeof(w->words), w->process + BEAM_PROCESS_HEAP))
		return 1;
	for (u32 i = 0; i < BEAM_WORDS - 3; i++) {
		u64 start = w->words[i], bytes = w->words[i + 1] - start;
		u64 abandoned = w->words[i + 2], size = w->words[i + 3] * 8;
		bool is_other = BEAM_HAS_LINK && w->at - start > bytes;
		if ((is_other ? stop : w->at) - start > bytes)
			continue;
		if (bytes != size && (!abandoned || abandoned & 7 || !size || (size | bytes) >> BEAM_APART_BITS))
			continue;
		if (is_other)
			w->at = stop;
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
	else
		w->at = beam_stack(s, w, registers, stop);
	if (w->at && !find_beam_heap(w, stop))
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
			if (!BEAM_HAS_LINK || word != w->shared_link)
				push_beam(s, w, word - 1, 1);
			w->shared_link = 0;
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
	if (BEAM_HAS_LINK && !w->has_top && !w->is_waiting && !result)
		take_shared_link();
	if (BEAM_HAS_LINK && w->shared_link && !result)
		result = pass_new_variables(w->shared_link - BEAM_CALL_BYTES);
	else if (w->has_top && !result)
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
			w->link = w->shared_link = 0;
			take_beam_stack(s, w, 1);
		}
		return 0;
	}
	w->code_start = m->start;
	w->code_length = m->length;
	w->loose_words = BEAM_LOOSE_WORDS;
	w->link = w->shared_link = 0;
	w->has_top = !is_on_way_to_shared(s, w) && !find_beam_module(address);
	if (w->has_top) {
		w->link = s->is_leaf ? link_of(s) : 0;
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

#endif
