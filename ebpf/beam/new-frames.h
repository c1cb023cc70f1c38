/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Frames that are new: a function makes room for its variables (sub $size,%rsp or sub x20,x20,#size) and then writes them, one after
 * the other. Until then old return addresses may stand there. All are written before the first call that may collect garbage. So only the frame
 * on top can have such, and only where its code runs straight on from where it made room: then its size is known.
 */
#ifndef EF_BEAM_NEW_FRAMES_H
#define EF_BEAM_NEW_FRAMES_H

#include "link.h"

static __always_inline bool is_return_address(const struct ef_beam_state *w, u64 word)
{
	return word && !(word & 3) && (word - w->code_start < w->code_length || !find_beam_module(word - 1));
}

/* Passes the variables of the frame on top, if the code in front of `pc` has made room for them: behind them is a return address, with
 * frame pointers after one of those. Where that can't be read the stack ends. Global, so that it is verified once. */
__noinline int pass_new_variables(u64 pc)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(BEAM);
	if (!s)
		return 1;
	struct ef_beam_state *w = &s->runtimes.beam;
	u64 behind[2] = {};

	s->state.marker = EF_MARKER_STACK_READ;
	if (BEAM_READ(w->code, BEAM_CODE_BYTES, pc - BEAM_CODE_BYTES))
		return 1;
	u64 size = room_made(w), bytes = w->end - w->at - size;
	take_link(s, w);
	OPAQUE(bytes);
	if (bytes > sizeof(behind))
		bytes = sizeof(behind);
	if (size && size < w->end - w->at && BEAM_READ(behind, bytes, w->at + size))
		return 1;
	s->state.marker = EF_MARKER_NONE;
	if (is_return_address(w, behind[0]) || is_return_address(w, behind[1])) {
		w->at += size;
		w->next_word = 0;
	}
	return 0;
}

#endif
