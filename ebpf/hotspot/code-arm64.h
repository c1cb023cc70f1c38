/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * HotSpot's machine code for arm64: how far a frame is made or taken down where the leaf is. See frames.h.
 *
 * A frame of n bytes is made and taken down by one of (C1 and C2)
 *
 *   sub sp, sp, #n; stp x29, x30, [sp, #n-16]; [add x29, sp, #n-16]                                (n < 528)
 *   stp x29, x30, [sp, #-16]!; [mov x29, sp;] sub sp, sp, #n-16 or x8                              (larger ones)
 *
 *   ldp x29, x30, [sp, #n-16]; add sp, sp, #n
 *   add sp, sp, #n-16 or x8; ldp x29, x30, [sp], #16
 *
 * and native methods and handwritten code by
 *
 *   stp x29, x30, [sp, #-16]!; mov x29, sp
 *   mov sp, x29; ldp x29, x30, [sp], #16
 *
 * What stands in brackets is there with -XX:+PreserveFramePointer. Before and behind it the return address is in x30 and
 * x29 is the caller's. What else stands between the frame and the place that HotSpot calls "frame complete", or before ret,
 * does not touch them.
 */
#ifndef EF_HOTSPOT_CODE_ARM64_H
#define EF_HOTSPOT_CODE_ARM64_H

#include "frames.h"

/* Instructions that are looked at: a blob's header is larger than what lies before the first one of its code. */
#define WORDS_BEFORE 16
#define WORDS_BEHIND (HOTSPOT_CODE_BYTES / 4 - WORDS_BEFORE)
#define COMPILED_BYTES ((WORDS_BEFORE + 2) * 4)

#define SAVE_RECORD 0xa9007bfd    /* stp x29, x30, [sp, #8 * (bits 15 to 21)] */
#define RESTORE_RECORD 0xa9407bfd /* ldp x29, x30, the same */
#define RECORD_OFFSET(bytes) ((u32)(bytes) >> 3 << 15)
#define PUSH_RECORD 0xa9bf7bfd /* stp x29, x30, [sp, #-16]! */
#define POP_RECORD 0xa8c17bfd  /* ldp x29, x30, [sp], #16 */
#define SET_FP 0x910003fd      /* mov x29, sp */
#define RET 0xd65f03c0
#define NEXT_BYTECODE 0xd61f0120 /* br x9 */
/* Where a frame is made by sub and stp */
#define SMALL_FRAME 528

/* Up to JDK 21: what a call of C leaves below the frame, so that the JVM finds the return address */
#define PUSH_BREADCRUMB 0xa9bf27ff /* stp xzr, x9, [sp, #-16]! */
#define CALL_C 0xd63f0100          /* blr x8 */
#define DROP_BREADCRUMB 0x910043ff /* add sp, sp, #16 */

/* The instruction `i` places behind the program counter. */
static __always_inline u32 instruction(const struct ef_hotspot_state *w, int i)
{
	return ((const u32 *)w->code)[WORDS_BEFORE + i];
}

static __always_inline u64 return_register(struct ef_scratch *s)
{
	return CODE_ADDRESS(s->state.leaf.by_dwarf_number[REG_RETURN]);
}

/* Is it that one? 1 or 0, without a branch, each of which would make the verifier walk through the rest of a loop once more. */
static __always_inline u32 is(u32 word, u32 instruction)
{
	u64 difference = word ^ instruction;

	OPAQUE(difference);
	return (difference - 1) >> 63;
}

/* Is what follows the instruction reached from elsewhere only? */
static __always_inline u32 ends_path(u32 word)
{
	return is(word, RET) | is(word & 0xfc000000, 0x14000000) /* b */ |
	       is(word & 0xfffffc1f, 0xd61f0000) /* br */;
}

static __always_inline u32 lowers_sp(u32 word)
{
	return is(word & 0xff8003ff, 0xd10003ff) /* sub sp, sp, #n */ | is(word, 0xcb2863ff) /* sub sp, sp, x8 */;
}

/* What the instructions before the program counter do, a bit for each, the nearest one's lowest. Global, so that it is
 * verified once, and what it keeps is not on the stack of what follows. */
__noinline int look_back_in_hotspot_code(u32 save, u32 restore)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(HOTSPOT);
	if (!s)
		return 0;
	struct ef_hotspot_state *w = &s->runtimes.hotspot;
	u32 saves = 0, pushes = 0, lowers = 0, restores = 0, ends = 0;

	for (int i = 1; i <= WORDS_BEFORE; i++) {
		u32 word = instruction(w, -i);
		saves |= is(word, save) << i;
		pushes |= is(word, PUSH_RECORD) << i;
		lowers |= lowers_sp(word) << i;
		restores |= (is(word, POP_RECORD) | is(word, restore)) << i;
		ends |= ends_path(word) << i;
	}
	w->saves = saves;
	w->pushes = pushes;
	w->lowers = lowers;
	w->restores = restores;
	w->ends = ends;
	return 0;
}

/* Is the nearest of these nearer than the nearest of those, if there is any? */
static __always_inline bool is_nearer(u32 these, u32 those)
{
	return (these & -these) - 1 < (those & -those) - 1;
}

/* is_before: the place where the frame is complete */
static __always_inline int frame_in_code(struct ef_hotspot_state *w, bool is_before)
{
	bool is_small = w->frame_bytes && w->frame_bytes < SMALL_FRAME;
	u32 offset = is_small ? RECORD_OFFSET(w->frame_bytes - 16) : 0;
	u32 save = is_small ? SAVE_RECORD | offset : PUSH_RECORD;
	u32 restore = is_small ? RESTORE_RECORD | offset : POP_RECORD;

	if (is_small && (instruction(w, 0) == save || instruction(w, -1) == restore))
		return FRAME_ALLOCATED;
	if (instruction(w, 0) == POP_RECORD)
		return FRAME_PUSHED;
	look_back_in_hotspot_code(save, restore);
	if (is_before && is_small && w->saves)
		return FRAME_COMPLETE;
	if (is_before && w->pushes)
		return is_nearer(w->lowers, w->pushes) ? FRAME_COMPLETE : FRAME_PUSHED;
	if (is_before || is_nearer(w->restores, w->ends) || !w->frame_bytes)
		return FRAME_NONE;
	return FRAME_COMPLETE;
}

/* Native methods have frames within their frame for calls of the JVM, and leave by more than one way: the frame is there if
 * they have called something, or x29 is where they have put it. */
static __always_inline int native_frame(struct ef_scratch *s, const struct ef_hotspot_state *w)
{
	bool has_called = return_register(s) - w->blob < BLOB_INT(w, w->jvm.size);

	return has_called || s->state.fp == s->state.sp + w->frame_bytes - 16 ? FRAME_POINTER : FRAME_NONE;
}

static __always_inline int compiled_frame(struct ef_scratch *s, struct ef_hotspot_state *w, int frame,
					  bool is_before)
{
	if (w->kind == NAME_NATIVE && !is_before && (frame == FRAME_COMPLETE || frame == FRAME_NONE))
		return native_frame(s, w);
	if (frame != FRAME_COMPLETE)
		return frame;
	if (instruction(w, -1) == PUSH_BREADCRUMB ||
	    (instruction(w, 0) == DROP_BREADCRUMB && instruction(w, -1) == CALL_C))
		s->state.sp += 16;
	return FRAME_COMPLETE;
}

/* `one` where the condition is 1, `other` where it is 0 */
static __always_inline u32 choose(u32 condition, u32 one, u32 other)
{
	u32 mask = -condition;

	OPAQUE(mask);
	return (one & mask) | (other & ~mask);
}

/* Adapters lower the stack pointer of compiled callers for the interpreter, which gets it in a register: mov x13, sp, from
 * JDK 20 on mov x19, sp. */
static __always_inline void find_sp_in_adapter(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	u32 sender = 0;

	for (int i = WORDS_BEFORE; i > 0; i--) {
		u32 word = instruction(w, -i);
		u32 is_move = is(word, 0x910003ed) | is(word, 0x910003f3);
		sender = choose(is_move, word & 31, choose(ends_path(word), 0, sender));
	}
	w->sender = sender;
	u64 sp = s->state.leaf.by_dwarf_number[w->sender & 31];
	if (w->sender && sp - s->state.sp < HOTSPOT_REACH)
		s->state.sp = sp;
}

/* Handwritten code that is called as functions are, with or without a frame. */
static __always_inline int leaf_routine_frame(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	u64 caller = return_register(s);

	if (s->state.fp < s->state.sp || s->state.fp - s->state.sp > HOTSPOT_REACH || s->state.fp & 7 ||
	    USER_READ(w->pair, 16, s->state.fp))
		return FRAME_NONE;
	w->pair[1] = CODE_ADDRESS(w->pair[1]);
	if (w->pair[1] == caller)
		return FRAME_POINTER;
	/* it has called something, or is what another routine of the blob calls, and then that one's frame is told of */
	if (caller - w->blob < BLOB_INT(w, w->jvm.size) || !is_code(s, caller))
		return is_code(s, w->pair[1]) ? FRAME_POINTER : FRAME_NONE;
	return FRAME_NONE;
}

static __always_inline bool begins_frame(const struct ef_hotspot_state *w, u32 word)
{
	return word == PUSH_RECORD || word == (0xd10003ff | (u32)w->frame_bytes << 10) /* sub sp, sp, #n */;
}

static __always_inline int stub_frame(struct ef_scratch *s, struct ef_hotspot_state *w, int frame)
{
	if (instruction(w, 0) == SET_FP && instruction(w, -1) == PUSH_RECORD)
		return FRAME_PUSHED;
	if (w->frame_bytes) {
		if (frame != FRAME_COMPLETE)
			return frame;
		if (s->state.fp - s->state.sp < w->frame_bytes)
			return FRAME_POINTER;
		return begins_frame(w, instruction(w, 0)) || begins_frame(w, instruction(w, 1)) ? FRAME_NONE :
												  FRAME_COMPLETE;
	}
	if (frame == FRAME_PUSHED || instruction(w, 0) == PUSH_RECORD)
		return frame;
	if (w->kind == NAME_STUBS)
		return leaf_routine_frame(s, w);
	find_sp_in_adapter(s, w);
	return FRAME_NONE;
}

/* Global, so that it is verified once, and what it keeps is not on the stack of what follows. */
__noinline int find_hotspot_leaf_frame(u32 is_method)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(HOTSPOT);
	if (!s)
		return FRAME_NONE;
	struct ef_hotspot_state *w = &s->runtimes.hotspot;

	if (USER_READ(w->code, COMPILED_BYTES, s->state.pc - WORDS_BEFORE * 4))
		return is_method || w->frame_bytes ? FRAME_COMPLETE : FRAME_POINTER;
	bool is_before = is_method && s->state.pc < complete_at(w);
	int frame = frame_in_code(w, is_before);
	return is_method ? compiled_frame(s, w, frame, is_before) : stub_frame(s, w, frame);
}

static __always_inline int leaf_frame(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	(void)s, (void)w;
	return find_hotspot_leaf_frame(1);
}

static __always_inline int leaf_stub_frame(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	(void)s, (void)w;
	return find_hotspot_leaf_frame(0);
}

/* Of an interpreted frame with that pair at its frame pointer. An interpreted caller has its stack pointer below what its
 * expression stack may need, and the frames that it calls begin where that ends now; its own is found by its frame pointer. */
static __always_inline u64 caller_sp(u64 sender_sp, u64 fp)
{
	return sender_sp <= fp && fp - sender_sp < HOTSPOT_REACH ? fp + 16 : sender_sp;
}

/* The frame of the leaf is none, or not there any more. */
static __always_inline int step_left_interpreter(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	u64 caller = return_register(s);

	if (!s->is_leaf || !is_code(s, caller)) {
		count(EF_COUNTER_hotspot_bad_frame);
		return 1;
	}
	push_hotspot(s, EF_HOTSPOT_STUB, w->blob, s->state.pc - w->code_begin, w->name);
	s->state.pc = caller;
	return 0;
}

/* What the interpreter does last: ldp x29, x30, [sp], #16; [mov x20, x9;] and sp, x20, #-16; ret */
static __always_inline int step_leaving_interpreter(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	u64 *r = s->state.leaf.by_dwarf_number, sp = s->state.sp;

	for (int i = 0; i < 4; i++) {
		u32 word = instruction(w, i);
		if (word == 0xaa0903f4) /* mov x20, x9 */
			sp = r[9];
		else if ((word & 0xfffffc1f) == 0x927cec1f) /* and sp, xn, #-16 */
			sp = sp == s->state.sp ? r[(word >> 5) & 31] : sp;
		else if (word != RET)
			continue;
		break;
	}
	if ((sp & ~15ULL) - s->state.sp < HOTSPOT_REACH)
		s->state.sp = sp & ~15ULL;
	return step_left_interpreter(s, w);
}

/* How far back the frame's pair was saved, and whether it was restored; 0: it was not. */
static __always_inline void look_back_in_interpreter(struct ef_hotspot_state *w)
{
	u32 saves = 0, restores = 0;

	for (int i = 10; i > 0; i--) {
		u32 word = instruction(w, -i), goes_on = 1 - ends_path(word);
		saves = choose(goes_on, choose(is(word & 0xffc07fff, SAVE_RECORD), i, saves), 0);
		restores = choose(goes_on, choose(is(word, POP_RECORD), i, restores), 0);
	}
	w->saves = saves;
	w->restores = restores;
}

/* The register that is saved as the caller's stack pointer, behind the pair; 0: none is. From the last instruction on, so
 * that the nearest one counts. */
static __always_inline void look_ahead_in_interpreter(struct ef_hotspot_state *w)
{
	u32 sender = 0, is_saved = 0;

	for (int i = WORDS_BEHIND - 1; i >= 0; i--) {
		u32 word = instruction(w, i), goes_on = 1 - (is(word, RET) | is(word, NEXT_BYTECODE));
		/* stp xzr, xs, [sp, #n] */
		u32 is_sender = is(word & 0xffc083ff, 0xa90003ff) & (1 - is(word & 0x7c00, 0x7c00));
		sender = choose(goes_on, choose(is_sender & (1 - is_saved), (word >> 10) & 31, sender), 0);
		is_saved = choose(goes_on & is(word & 0xffc07fff, SAVE_RECORD), 1 - is(sender, 0),
				  is_saved & goes_on);
	}
	w->sender = is_saved || w->saves ? sender : 0;
}

/*
 * A method is being called, or its frame is being made:
 *
 *   ...; stp x29, x30, [sp, #n]; add x29, sp, #n; ...; stp xzr, xs, [sp, #n-16]
 *
 * The Method is in x12, the caller's stack pointer in xs (x13, from JDK 20 on x19), the return address in x30. Which
 * instructions follow, up to the last one of these, says that it is so: registers keep old values. 1 where it is not so.
 */
static __always_inline int step_called_interpreter(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	u64 *r = s->state.leaf.by_dwarf_number;
	u64 pc = return_register(s), fp = s->state.fp;

	if (USER_READ(w->code, sizeof(w->code), s->state.pc - WORDS_BEFORE * 4))
		return 1;
	look_back_in_interpreter(w);
	if (w->restores)
		return step_leaving_interpreter(s, w);
	look_ahead_in_interpreter(w);
	if (!w->sender)
		return 1;
	u64 sender_sp = r[w->sender & 31];
	/* the frame's own x29 is set behind the pair */
	if (w->saves > 1) {
		if (USER_READ(w->pair, 16, fp))
			return 1;
		fp = w->pair[0];
		pc = CODE_ADDRESS(w->pair[1]);
	}
	sender_sp = caller_sp(sender_sp, s->state.sp);
	if (sender_sp - s->state.sp > HOTSPOT_REACH || !is_code(s, pc))
		return 1;
	if (push_interpreted(s, w, r[REG_HOTSPOT_METHOD], 0, 0))
		return 1;
	s->state.fp = fp;
	s->state.sp = sender_sp;
	s->state.pc = pc;
	return 0;
}

#endif
