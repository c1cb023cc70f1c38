/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The native unwinder. One step names the frame of the current program counter and moves to its caller:
 *
 *   program counter -> mapping -> table -> rule -> canonical frame address (CFA)
 *   the caller's stack pointer is the CFA; its program counter and frame pointer are saved near it
 *
 * The return address points behind the call, which may be another function's first byte: it is looked up one
 * byte earlier. So is the address behind the instruction of a system call. A frame that a signal interrupted is looked up
 * where it was. Where no rule is known the frame-pointer chain is tried, if it looks like one; else the stack ends with a
 * marker frame that says why.
 */
#ifndef EF_UNWIND_H
#define EF_UNWIND_H

#include "return-probes.h"
#include "runtimes.h"
#include "thread-context/read.h"

/* One frame; global, so that it is verified once and the loop around it stays small. */
__noinline int unwind_step(void)
{
	struct ef_scratch *s = get_scratch();
	if (!s)
		return STEP_DONE;
	s->state.pc = CODE_ADDRESS(s->state.pc);
	if (s->trampoline && s->state.pc == s->trampoline)
		pass_trampoline(s);
	u64 address = s->state.pc - s->is_return_address;
	int slot = find_mapping(s, address);

	/* clang 17 and later know what resolve_mapping() returns and drop the mask below; the verifier does not */
	OPAQUE(slot);
	if (slot < 0)
		return cut(s, s->marker_if_guess_fails ? s->marker_if_guess_fails : (u32)-slot);
	s->marker_if_guess_fails = EF_MARKER_NONE;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	s->table_offset = address + m->delta;
	if (unwind_runtime(s, slot)) {
		s->is_return_address = 1;
		s->is_leaf = 0;
		s->knows_callee_saved = 0;
		s->marker_if_sp_unknown = EF_MARKER_NONE;
		return s->state.pc ? STEP_NEXT : STEP_DONE;
	}
	if (m->key) {
		push_word(s, FRAME_WORD(EF_FRAME_FILE, s->table_offset));
		push_word(s, m->key);
	} else {
		push_word(s, FRAME_WORD(EF_FRAME_ANON, address));
		s->state.has_anonymous = 1;
	}
	s->state.user_frames++;
	s->is_return_address = 1;
	s->found_callee_saved = 0;
	s->found_all = 0;
	int result = s->returned_to ? step_return(s) : step_from(s, slot);
	s->is_leaf = s->found_all;
	s->knows_callee_saved = s->found_callee_saved;
	/* a chain that ends in 0 is how _start and clone begin where they have no unwind information; what they call may
	 * have signed it */
	return result == STEP_NEXT && CODE_ADDRESS(s->state.pc) ? STEP_NEXT : STEP_DONE;
}

/* Counter of the way in which a user stack ended, in the order of enum ef_marker. */
static __always_inline u32 marker_counter(u32 marker)
{
	switch (marker) {
	case EF_MARKER_NONE:
		return EF_COUNTER_user_complete;
	case EF_MARKER_DEPTH:
		return EF_COUNTER_user_cut_depth;
	case EF_MARKER_NO_TABLE:
		return EF_COUNTER_user_cut_no_table;
	case EF_MARKER_PENDING:
		return EF_COUNTER_user_cut_pending;
	case EF_MARKER_NO_RULE:
		return EF_COUNTER_user_cut_no_rule;
	case EF_MARKER_ANON:
		return EF_COUNTER_user_cut_anon;
	case EF_MARKER_STACK_READ:
		return EF_COUNTER_user_cut_stack_read;
	case EF_MARKER_REGISTER:
		return EF_COUNTER_user_cut_register;
	case EF_MARKER_NO_PROGRESS:
		return EF_COUNTER_user_cut_no_progress;
	case EF_MARKER_COMPAT:
		return EF_COUNTER_user_cut_compat;
	case EF_MARKER_VMA_RACE:
		return EF_COUNTER_user_cut_vma_race;
	default:
		return EF_COUNTER_user_cut_unmapped;
	}
}

/* What a sample's frames are gathered in, empty. */
static __always_inline void begin_stack(struct ef_scratch *s)
{
	s->sample.label_bytes = 0;
	s->state.words = 0;
	s->state.user_frames = 0;
	s->state.hash = HASH_START;
	s->state.has_anonymous = 0;
	s->state.marker = EF_MARKER_NONE;
	s->next_mapping = 0;
	s->mappings[0].length = s->mappings[1].length = s->mappings[2].length = s->mappings[3].length = 0;
	s->frame_pointer_frames = 0;
	s->vma_lookups = 0;
	s->begun_runtimes = 0;
	s->has_looked_up = 0;
	s->state.has_interpreted = 0;
	s->state.runtime_file = 0;
	s->marker_if_guess_fails = EF_MARKER_NONE;
	s->state.unread = 0;
	s->is_unwound = 0;
	s->trampoline = 0;
	s->returned_to = 0;
}

#ifndef UNWIND_STEPS_LINKAGE
#define UNWIND_STEPS_LINKAGE __noinline
#endif

/* Global, so that these rounds are verified once, not each time that the loop around them calls. */
UNWIND_STEPS_LINKAGE int unwind_steps(void)
{
	struct ef_scratch *s = get_scratch();
	if (!s)
		return STEP_DONE;
	for (u32 i = 0; i < FRAMES_AT_A_TIME; i++) {
		if (s->state.user_frames >= config.max_user_frames)
			return cut(s, EF_MARKER_DEPTH);
		if (unwind_step())
			return STEP_DONE;
	}
	return STEP_NEXT;
}

/* Unwinds to the root, to the limit, or to a frame that has no known caller. */
static __always_inline void unwind_frames(struct ef_scratch *s)
{
	s->is_unwound = 1;
	s->is_leaf = 1;
	s->knows_callee_saved = 1;
	s->is_return_address = s->state.is_behind_syscall;
	s->marker_if_sp_unknown = EF_MARKER_NONE;
	for (u32 i = 0; i < EF_MAX_USER_FRAMES / FRAMES_AT_A_TIME + 1; i++)
		if (unwind_steps())
			return;
	s->state.marker = EF_MARKER_DEPTH;
}

/* Takes the stack and the labels. */
static __always_inline void unwind_user(struct ef_scratch *s)
{
	unwind_frames(s);
	if (HAS_RUNTIME(GO) && !config.leaves_labels && s->begun_runtimes & 1U << EF_RUNTIME_GO)
		take_go_labels();
	if (HAS_RUNTIME(BEAM) && !config.leaves_labels && s->begun_runtimes & 1U << EF_RUNTIME_BEAM)
		take_beam_labels();
	if (HAS_THREAD_CONTEXTS && !config.leaves_labels)
		take_thread_context();
}

/* Says how the user stack ended, once it is as complete as it gets. */
static __always_inline void end_user_stack(struct ef_scratch *s, bool in_kernel)
{
	if (!s->is_unwound)
		return;
	if (in_kernel && !s->state.user_frames) {
		/* exec has put the new registers in place, but not yet the memory that they point to */
		count(EF_COUNTER_user_leaf_unmapped);
		return;
	}
	count(marker_counter(s->state.marker));
	if (s->state.marker)
		push_word(s, FRAME_WORD(EF_FRAME_MARKER, s->state.marker));
	if (s->frame_pointer_frames)
		count_by(EF_COUNTER_frames_frame_pointer, s->frame_pointer_frames);
	count_by(EF_COUNTER_vma_lookups, s->vma_lookups);
}

#endif
