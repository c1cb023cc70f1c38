/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Frames that are new: a function makes room for its variables (sub $size,%rsp) and then writes them, one after the other. Until
 * then old return addresses may stand there. All are written before the first call that may collect garbage. So only the frame
 * on top can have such, and only where its code runs straight on from where it made room: then its size is known.
 */
#ifndef EF_BEAM_NEW_FRAMES_H
#define EF_BEAM_NEW_FRAMES_H

#include "modules.h"

/* Of the call before a return address */
#define BEAM_CALL_BYTES 5
/* sub $size,%rsp: of one byte, of four; add $size,%rsp */
#define BEAM_SUB_8 0xec8348
#define BEAM_SUB_32 0xec8148
#define BEAM_ADD_8 0xc48348
#define BEAM_ADD_32 0xc48148

/* Is it the first byte of what leaves straight code: call, jmp, jmp, ret? Operands may look like one: nothing is known then. */
static __always_inline bool leaves_straight_code(u32 byte)
{
	return byte == 0xe8 || byte == 0xe9 || byte == 0xeb || byte == 0xc3;
}

/* Bytes that the code in w->code has made room for when it ends; 0: it is not known. */
static __always_inline u32 room_made(const struct ef_beam_state *w)
{
	u32 size = 0;

	for (u32 i = 0; i < BEAM_CODE_BYTES; i++) {
		u32 code = w->code[i] | w->code[i + 1] << 8 | w->code[i + 2] << 16;
		if (code == BEAM_SUB_8)
			size = w->code[i + 3];
		else if (code == BEAM_SUB_32)
			size = w->code[i + 3] | w->code[i + 4] << 8;
		else if (code == BEAM_ADD_8 || code == BEAM_ADD_32 || (code & 0xf0ff) == 0xe0ff ||
			 leaves_straight_code(code & 0xff))
			size = 0;
	}
	return size;
}

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
