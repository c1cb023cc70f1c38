/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Going to the caller of a frame of .NET's machine code. Each function has an UNWIND_INFO as on 64-bit Windows: what its
 * prologue did, the last step first. Most functions have a frame pointer, which points to the usual pair; small ones that
 * call nothing, or only once, have none, and would hide their caller if it were followed. A leaf may be in the prologue,
 * of which as much counts as was executed, or in the epilogue, which the instructions tell.
 */
#ifndef EF_DOTNET_FRAMES_H
#define EF_DOTNET_FRAMES_H

#include "sections.h"

#define DOTNET_FP 5 /* rbp, as unwind codes number it */
#define DOTNET_MAX_POPS 8
/* A larger frame is taken for garbage. */
#define DOTNET_REACH (1ULL << 24)

enum unwind_op {
	UNWIND_PUSH = 0,
	UNWIND_LARGE_ALLOCATION = 1,
	UNWIND_ALLOCATION = 2,
	UNWIND_SET_FP = 3,
	UNWIND_SAVE = 4,
	UNWIND_SAVE_FAR = 5,
	UNWIND_SAVE_XMM = 8,
	UNWIND_SAVE_XMM_FAR = 9,
	UNWIND_SET_FP_LARGE = 11, /* .NET's own */
};

#define CODE_OFFSET(code) ((code)&255)
#define CODE_OP(code) ((code) >> 8 & 15)
#define CODE_INFO(code) ((code) >> 12)

/* Slots that a code takes beside its first */
static __always_inline u32 more_slots(u32 op, u32 info)
{
	switch (op) {
	case UNWIND_LARGE_ALLOCATION:
		return info ? 2 : 1;
	case UNWIND_SAVE:
	case UNWIND_SAVE_XMM:
		return 1;
	case UNWIND_SAVE_FAR:
	case UNWIND_SAVE_XMM_FAR:
	case UNWIND_SET_FP_LARGE:
		return 2;
	default:
		return 0;
	}
}

static __always_inline u32 unwind_slot(const struct ef_dotnet_state *w, u64 i)
{
	OPAQUE(i);
	return w->unwind.codes[i & (DOTNET_UNWIND_SLOTS - 1)];
}

/* Undoes the prologue as far as it is executed at `offset`. Global, so that it is verified once. 0: w->sp is that of the
 * return address; 1: the frame pointer is set; 2: it can't be told. */
__noinline int undo_dotnet_prologue(u32 offset)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(DOTNET);
	if (!s)
		return 2;
	struct ef_dotnet_state *w = &s->runtimes.dotnet;
	u32 left = w->unwind.code_count > DOTNET_UNWIND_SLOTS ? DOTNET_UNWIND_SLOTS : w->unwind.code_count;

	w->sp = s->state.sp;
	w->fp = s->state.fp;
	w->at = 0;
	for (u32 i = 0; i < DOTNET_UNWIND_SLOTS; i++) {
		u32 at = w->at;
		if (at >= left)
			return 0;
		u32 code = unwind_slot(w, at), op = CODE_OP(code), info = CODE_INFO(code);
		w->at = at + 1 + more_slots(op, info);
		if (CODE_OFFSET(code) > offset)
			continue;
		if (op == UNWIND_SET_FP || op == UNWIND_SET_FP_LARGE)
			return 1;
		if (op == UNWIND_PUSH) {
			if (info == DOTNET_FP && USER_READ(&w->fp, 8, w->sp))
				return 2;
			w->sp += 8;
		} else if (op == UNWIND_ALLOCATION) {
			w->sp += info * 8 + 8;
		} else if (op == UNWIND_LARGE_ALLOCATION) {
			u64 words = unwind_slot(w, at + 1);
			w->sp += info ? words | (u64)unwind_slot(w, at + 2) << 16 : words * 8;
		}
	}
	return w->at >= left ? 0 : 2;
}

/* Is the leaf in an epilogue? It pops what it has left to pop, and returns or jumps. Then w->sp is that of the return
 * address. `code`: from 8 bytes before the program counter. */
static __always_inline bool undo_epilogue(struct ef_scratch *s, struct ef_dotnet_state *w)
{
	u64 before = w->words[0], at = w->words[1], next = w->words[2];
	bool pops = before >> 56 == 0x5d || (before >> 32 & 0xffffff) == 0xc48348;

	w->sp = s->state.sp;
	w->fp = s->state.fp;
#pragma unroll
	for (int i = 0; i < DOTNET_MAX_POPS; i++) {
		u32 bytes = (at & 0xff) == 0x5b || (at & 0xff) == 0x5d      ? 1 :
			    (at & 0xff) == 0x41 && (at >> 8 & 0xfc) == 0x5c ? 2 :
									      0;
		if (bytes) {
			if ((at & 0xff) == 0x5d && USER_READ(&w->fp, 8, w->sp))
				return 0;
			w->sp += 8;
			pops = 1;
			at = at >> 8 | next << 56;
			next >>= 8;
			if (bytes == 2) {
				at = at >> 8 | next << 56;
				next >>= 8;
			}
		}
	}
	if ((at & 0xff) == 0xc3)
		return 1;
	/* a call in tail position: jmp rel32, jmp *mem, jmp *%rax */
	return pops && ((at & 0xff) == 0xe9 || (at & 0xffff) == 0x25ff || (at & 0xffffff) == 0xe0ff48 ||
			(at & 0xffff) == 0xe0ff);
}

static __always_inline int take_return_address(struct ef_scratch *s, struct ef_dotnet_state *w)
{
	if (w->sp - s->state.sp > DOTNET_REACH || w->sp & 7 || USER_READ(&w->pair[0], 8, w->sp))
		return 1;
	s->state.sp = w->sp + 8;
	s->state.fp = w->fp;
	s->state.pc = w->pair[0];
	return 0;
}

static __always_inline int follow_frame_pointer(struct ef_scratch *s, struct ef_dotnet_state *w)
{
	if (s->state.fp < s->state.sp || s->state.fp - s->state.sp > DOTNET_REACH || s->state.fp & 7 ||
	    USER_READ(w->pair, 16, s->state.fp))
		return 1;
	s->state.sp = s->state.fp + 16;
	s->state.fp = w->pair[0];
	s->state.pc = w->pair[1];
	return 0;
}

/* Reads the function's UNWIND_INFO; where it can't be read, returns the first address that is not in memory, else 0. Behind
 * its codes the page may end, and the process may never have read the next one. */
static __always_inline u64 read_unwind_info(struct ef_dotnet_state *w, u64 address)
{
	u64 size = PAGE_BYTES - (address & (PAGE_BYTES - 1));

	OPAQUE(size);
	if (size > sizeof(w->unwind))
		size = sizeof(w->unwind);
	if (USER_READ(&w->unwind, size, address))
		return address;
	if (size >= sizeof(w->unwind) || 4 + w->unwind.code_count * 2 <= size ||
	    !USER_READ(&w->unwind, sizeof(w->unwind), address))
		return 0;
	return address + size;
}

/* Goes to the caller, as w->function and its UNWIND_INFO say; 1 where it is not found. Global, so that it is verified
 * once. */
__noinline int step_dotnet_function(u32 offset)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(DOTNET);
	if (!s)
		return 1;
	struct ef_dotnet_state *w = &s->runtimes.dotnet;
	/* of an image whose handlers never ran nothing has read it yet: most functions have a frame pointer */
	u64 unread = w->begin + (w->function.unwind & ~3U);
	if (!w->is_unwind_unread)
		unread = read_unwind_info(w, unread);
	if (unread) {
		note_unread(s, unread);
		count(EF_COUNTER_dotnet_unwind_unread);
		return follow_frame_pointer(s, w);
	}
	if (s->is_leaf) {
		if (!USER_READ(w->words, 24, s->state.pc - 8) && undo_epilogue(s, w))
			return take_return_address(s, w);
	} else if (w->unwind.frame_register) {
		return follow_frame_pointer(s, w);
	}
	switch (undo_dotnet_prologue(offset)) {
	case 0:
		return take_return_address(s, w);
	case 1:
		return follow_frame_pointer(s, w);
	default:
		return 1;
	}
}

#endif
