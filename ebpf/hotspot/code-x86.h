/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* HotSpot's machine code for x86-64: how far a frame is made or taken down where the leaf is. See frames.h. */
#ifndef EF_HOTSPOT_CODE_X86_H
#define EF_HOTSPOT_CODE_X86_H

#include "frames.h"

#define FIRST(word, bytes) ((word) & ((1ULL << (8 * (bytes))) - 1))
#define LAST(word, bytes) ((word) >> (64 - 8 * (bytes)))

/*
 * Frames of compiled code are set up by
 *
 *   push %rbp; [mov %rsp,%rbp;] sub $n,%rsp                                                        (C1 and C2)
 *   sub $n,%rsp; mov %rbp,n-8(%rsp); [lea n-8(%rsp),%rbp, or mov %rsp,%rbp; add $n-8,%rbp]         (C2)
 *
 * followed, from JDK 20 on, by a check whether the method may be entered, which `frame_complete` lies behind:
 *
 *   [nop;] cmpl $imm,disp(%r15); jne, or je and a call         (14 or 15 bytes; r15 is the thread)
 *
 * What stands in brackets is there with -XX:+PreserveFramePointer, or to align what follows.
 */
static __always_inline int frame_in_prologue(struct ef_hotspot_state *w, u64 pc, u64 complete_at)
{
	u64 before = w->code[0], at = w->code[1], check = 0;
	u64 last4 = LAST(before, 4), last5 = FIRST(LAST(before, 5), 4), last7 = FIRST(LAST(before, 7), 3);

	if (FIRST(at, 3) == 0xec8348 || FIRST(at, 3) == 0xec8148) /* sub $n,%rsp */
		return LAST(before, 1) == 0x55 || last4 == 0xec8b4855 || last4 == 0xe5894855 ? FRAME_PUSHED :
											       FRAME_NONE;
	if ((FIRST(at, 3) == 0xec8b48 || FIRST(at, 3) == 0xe58948) && LAST(before, 1) == 0x55)
		return FRAME_PUSHED;                                  /* mov %rsp,%rbp */
	if (FIRST(at, 4) == 0x246c8948 || FIRST(at, 4) == 0x24ac8948) /* mov %rbp,n(%rsp) */
		return FRAME_ALLOCATED;
	if (FIRST(last4, 3) == 0xec8348 || last7 == 0xec8148) /* behind sub $n,%rsp */
		return FRAME_COMPLETE;
	if (last5 == 0x246c8948 || FIRST(before, 4) == 0x24ac8948) /* behind mov %rbp,n(%rsp) */
		return FRAME_COMPLETE;
	if (FIRST(at, 3) == 0xc58348 || FIRST(at, 3) == 0xc58148) /* add $n,%rbp */
		return FRAME_COMPLETE;
	if (FIRST(last4, 3) == 0xc58348 || last7 == 0xc58148) /* behind it */
		return FRAME_COMPLETE;
	if (last5 == 0x246c8d48 || FIRST(before, 4) == 0x24ac8d48) /* behind lea n(%rsp),%rbp */
		return FRAME_COMPLETE;
	if (complete_at - pc <= 15 && !USER_READ(&check, 8, complete_at - 15) &&
	    (FIRST(check, 3) == 0x7f8141 || (FIRST(check >> 8, 3) == 0x7f8141 && complete_at - pc <= 14)))
		return FRAME_COMPLETE;
	return FRAME_NONE;
}

/*
 * Compiled code ends in add $n,%rsp; pop %rbp; then a check for a safepoint, and ret. The check is
 *
 *   JDK 8    test %eax,disp(%rip)
 *   JDK 11   mov disp(%r15),%r10; test %eax,(%r10)
 *   JDK 17   cmp disp(%r15),%rsp; ja
 */
static __always_inline int frame_in_epilogue(struct ef_hotspot_state *w)
{
	u64 before = w->code[0], at = w->code[1], after = w->code[2];
	u64 first2 = FIRST(at, 2), first3 = FIRST(at, 3);

	if (FIRST(at, 1) == 0x5d) /* pop %rbp */
		return FRAME_PUSHED;
	if (FIRST(at, 1) == 0xc3 || FIRST(at, 1) == 0xc2 || first2 == 0xc3f3) /* ret */
		return FRAME_NONE;
	if (first2 == 0x0585 && FIRST(at >> 48, 1) == 0xc3)
		return FRAME_NONE;
	if (FIRST(at, 4) == 0xc3028541)
		return FRAME_NONE;
	if ((first3 == 0x978b4d && LAST(at, 1) == 0x41 && FIRST(after, 3) == 0xc30285) ||
	    (first3 == 0x578b4d && LAST(at, 4) == 0xc3028541))
		return FRAME_NONE;
	if ((first3 == 0xa73b49 && LAST(at, 1) == 0x0f && FIRST(after, 1) == 0x87) ||
	    (first3 == 0x673b49 && FIRST(at >> 32, 2) == 0x870f))
		return FRAME_NONE;
	if (first2 == 0x870f && (FIRST(LAST(before, 7), 3) == 0xa73b49 || FIRST(LAST(before, 4), 3) == 0x673b49))
		return FRAME_NONE;
	return FRAME_COMPLETE;
}

static __always_inline int leaf_frame(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	u64 complete = complete_at(w);

	if (USER_READ(w->code, sizeof(w->code), s->state.pc - 8))
		return FRAME_COMPLETE;
	if (s->state.pc < complete)
		return frame_in_prologue(w, s->state.pc, complete);
	/* calls of C keep a frame pointer, and look for exceptions between leave and ret */
	if (w->kind == NAME_NATIVE && s->state.fp - s->state.sp > w->frame_bytes + HOTSPOT_NATIVE_PUSHES)
		return FRAME_NONE;
	return frame_in_epilogue(w);
}

/* Handwritten code: push %rbp; mov %rsp,%rbp comes first and leave; ret last, or there is no frame at all. */
static __always_inline int leaf_stub_frame(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	int frame = leaf_frame(s, w);
	u64 at = w->code[1];

	if (FIRST(at, 1) == 0x55 || FIRST(at, 4) == 0xc377f8c5) /* push %rbp; vzeroupper, ret */
		return FRAME_NONE;
	if ((FIRST(at, 3) == 0xec8b48 || FIRST(at, 3) == 0xe58948) && LAST(w->code[0], 1) == 0x55)
		return FRAME_PUSHED;
	if (frame != FRAME_COMPLETE || w->frame_bytes)
		return frame;
	/* Stubs that are called as functions have frames, and old return addresses below them; what leads from one kind of
	 * code to another has none, and fp is the caller's. */
	if (w->kind != NAME_STUBS && !USER_READ(w->pair, 8, s->state.sp) && is_java_code(w, w->pair[0]))
		return FRAME_NONE;
	if (s->state.fp - s->state.sp > HOTSPOT_REACH || USER_READ(w->pair, 16, s->state.fp) ||
	    !is_code(s, w->pair[1]))
		return FRAME_NONE;
	return FRAME_POINTER;
}

/* Of an interpreted frame with that pair at its frame pointer. */
static __always_inline u64 caller_sp(u64 sender_sp, u64 fp)
{
	(void)fp;
	return sender_sp;
}

/*
 * A method is being called: its Method is in a register, and the caller's stack pointer where later the bytecode pointer
 * is. The return address is on top of the stack, or in a register where the parameters are turned into local variables.
 */
static __always_inline int step_called_interpreter(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	u64 *r = s->state.leaf.by_dwarf_number;
	u64 pc = r[REG_HOTSPOT_CALLER], sender_sp = r[REG_HOTSPOT_BCP], fp = s->state.fp;
	u64 reach = s->state.fp - s->state.sp;

	if (reach >= INTERPRETED_WORDS * 8 && sender_sp - s->state.sp >= HOTSPOT_REACH)
		return 1;
	if (reach < INTERPRETED_WORDS * 8) {
		/* the frame is being built below the pair */
		if (USER_READ(w->pair, 16, s->state.fp) ||
		    (reach >= 8 && USER_READ(&sender_sp, 8, s->state.fp - 8)))
			return 1;
		fp = w->pair[0];
		pc = w->pair[1];
	} else if (!USER_READ(w->pair, 8, s->state.sp) && is_code(s, w->pair[0])) {
		pc = w->pair[0];
	}
	if (sender_sp <= s->state.sp || sender_sp - s->state.sp > HOTSPOT_REACH || !is_code(s, pc))
		return 1;
	if (push_interpreted(s, w, r[REG_HOTSPOT_METHOD], 0, 0))
		return 1;
	s->state.fp = fp;
	s->state.sp = sender_sp;
	s->state.pc = pc;
	return 0;
}

/* The frame of the leaf has just been taken down: on top of the stack is the return address. */
static __always_inline int step_left_interpreter(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	if (!s->is_leaf || USER_READ(w->pair, 8, s->state.sp) || !is_java_code(w, w->pair[0])) {
		count(EF_COUNTER_hotspot_bad_frame);
		return 1;
	}
	push_hotspot(s, EF_HOTSPOT_STUB, w->blob, s->state.pc - w->code_begin, w->name);
	s->state.sp += 8;
	s->state.pc = w->pair[0];
	return 0;
}

#endif
