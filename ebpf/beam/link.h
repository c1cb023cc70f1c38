/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Return addresses that are not on the Erlang stack (BEAM_HAS_LINK, code-arm64.h). */
#ifndef EF_BEAM_LINK_H
#define EF_BEAM_LINK_H

#include "code.h"

#if BEAM_HAS_LINK

/* Records of code that all modules share, one inside of the other, and the room on the scheduler's stack that they take */
#define BEAM_SHARED_FRAMES 4
#define BEAM_SHARED_STACK (1U << 16)

static __always_inline u64 link_of(const struct ef_scratch *s)
{
	return s->state.leaf.by_dwarf_number[REG_RETURN];
}

/* A function without a frame yet or any longer: its caller's is the first one on the stack. */
static __always_inline void take_link(struct ef_scratch *s, struct ef_beam_state *w)
{
	if (w->link && (w->is_before_frame || w->has_left_frame) && !find_beam_module(w->link - 1))
		push_beam(s, w, w->link - 1, 1);
	w->link = 0;
}

/*
 * In code that all modules share: the function that has called it, by the return address in the leaf's register, or in the frame
 * records on the scheduler's stack. Global, so that it is verified once.
 */
__noinline int take_shared_link(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(BEAM);
	if (!s)
		return 0;
	struct ef_beam_state *w = &s->runtimes.beam;
	u64 record[2] = { s->state.fp, s->is_leaf ? link_of(s) : 0 };

	for (u32 i = 0; i < BEAM_SHARED_FRAMES + 1; i++) {
		if (record[1] && !find_beam_module(record[1] - 1)) {
			w->shared_link = record[1];
			push_beam(s, w, record[1] - 1, 1);
			w->has_top = 1;
			return 0;
		}
		u64 at = record[0];
		if (w->registers - at - 1 >= BEAM_SHARED_STACK || BEAM_READ(record, sizeof(record), at))
			return 0;
	}
	return 0;
}

#else

static __always_inline u64 link_of(const struct ef_scratch *s)
{
	(void)s;
	return 0;
}

static __always_inline void take_link(struct ef_scratch *s, struct ef_beam_state *w)
{
	(void)s, (void)w;
}

static __always_inline void take_shared_link(void) {}

#endif
#endif
