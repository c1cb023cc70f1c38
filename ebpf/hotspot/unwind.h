/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The HotSpot unwinder: Java. All code that the JVM makes lies in its code heaps, anonymous memory that is divided into
 * segments. A byte for each segment says how far back the block begins that it belongs to; behind the block's header
 * stands a CodeBlob, which says what the code is, how large its frames are, and from where on they are complete.
 *
 *   interpreter   one blob for all of it; a frame is found by fp, and says which Method it runs, and where:
 *                 fp + 8 return address, fp caller's fp, fp - 8 caller's sp, fp - 24 Method, bytecode: 7 to 9 words below
 *   nmethod       a compiled method. It keeps no frame pointer, but each frame has the blob's size, with the caller's
 *                 fp and the return address at its end
 *   stubs         the rest: runtime calls, which have frames as compiled methods do, and handwritten code, which has
 *                 the usual pair at fp, or no frame at all
 *
 * Only the leaf can be in a prologue or an epilogue; the instructions around its program counter tell. Heaps and
 * offsets come from user space, once a process: see attach.h and agent/interpreters/hotspot.
 */
#ifndef EF_HOTSPOT_H
#define EF_HOTSPOT_H

#include "frames.h"
#include "interpreter.h"

/* On arm64 compiled methods that have a frame are called by code of the JVM's own only. */
static __always_inline bool is_caller(struct ef_scratch *s, const struct ef_hotspot_state *w, u64 address)
{
	if (RETURN_ADDRESS_ON_STACK || !w->frame_bytes)
		return is_code(s, address);
	return is_java_code(w, CODE_ADDRESS(address));
}

#if !RETURN_ADDRESS_ON_STACK

/* The leaf's return address is in its register. */
static __always_inline int step_by_register(struct ef_scratch *s, u64 frame_bytes)
{
	u64 caller = return_register(s);

	if (!is_code(s, caller))
		return 1;
	s->state.sp += frame_bytes;
	s->state.pc = caller;
	return 0;
}

#endif

/* Goes to the caller; 1 where no return address is found. Where code that aligns its stack for a call has left a gap
 * the return address is further up. Global, so that it is verified once. */
__noinline int step_to_hotspot_caller(u32 frame)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(HOTSPOT);
	if (!s)
		return 1;
	struct ef_hotspot_state *w = &s->runtimes.hotspot;
	u64 at = s->state.sp;

#if !RETURN_ADDRESS_ON_STACK
	if (frame == FRAME_NONE || frame == FRAME_ALLOCATED)
		return step_by_register(s, frame == FRAME_NONE ? 0 : w->frame_bytes);
#endif
	if (frame == FRAME_POINTER) {
		at = s->state.fp + 8;
		if (s->state.fp < s->state.sp || s->state.fp - s->state.sp > HOTSPOT_REACH || s->state.fp & 7)
			return 1;
	} else if (frame == FRAME_PUSHED) {
		at += 8;
	} else if (frame != FRAME_NONE) {
		if (!w->frame_bytes)
			return 1;
		at += w->frame_bytes - 8;
	}
	for (int i = 0; i < HOTSPOT_CANDIDATES; i++) {
		if (USER_READ(w->pair, 16, at - 8))
			return 1;
		if (is_caller(s, w, w->pair[1])) {
			if (frame != FRAME_NONE && frame != FRAME_ALLOCATED)
				s->state.fp = w->pair[0];
			s->state.sp = at + 8;
			s->state.pc = w->pair[1];
			return 0;
		}
		at += HOTSPOT_CANDIDATE_BYTES;
	}
	return 1;
}

/* The return address was replaced by that of the nmethod's handler, since its code is not valid any more: what it was is
 * in the frame. */
static __always_inline u64 undo_deoptimization(struct ef_scratch *s, struct ef_hotspot_state *w, u64 pc)
{
	u64 deopt = BLOB_WORD(w, w->jvm.deopt), deopt2 = 0, original = 0;

	if (w->jvm.has_deopt_offset)
		deopt = w->blob + BLOB_INT(w, w->jvm.deopt);
	if (w->jvm.deopt_method_handle)
		deopt2 = w->jvm.has_deopt_offset ? w->blob + BLOB_INT(w, w->jvm.deopt_method_handle) :
						   BLOB_WORD(w, w->jvm.deopt_method_handle);
	if (pc != deopt && pc != deopt2)
		return pc;
	u64 at = s->state.sp + (s64)(__s32)BLOB_INT(w, w->jvm.orig_pc);
	if (HOTSPOT_READ(&original, 8, at))
		return pc;
	original = CODE_ADDRESS(original);
	return original - w->code_begin > 1U << 31 ? pc : original;
}

/* Is the frame one of those that call C with 16 bytes more on the stack? */
static __always_inline void skip_breadcrumb(struct ef_scratch *s, struct ef_hotspot_state *w)
{
#if !RETURN_ADDRESS_ON_STACK
	if (w->jvm.leaves_breadcrumbs && !USER_READ(w->code, 8, s->state.pc - 8) &&
	    w->code[0] == ((u64)CALL_C << 32 | PUSH_BREADCRUMB))
		s->state.sp += 16;
#else
	(void)s, (void)w;
#endif
}

/* Compiled methods and stubs. Global, so that it is verified once; 0, or 1 where the caller is not found. */
__noinline int step_hotspot_code(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(HOTSPOT);
	if (!s)
		return 1;
	struct ef_hotspot_state *w = &s->runtimes.hotspot;
	bool is_method = w->kind == NAME_NMETHOD || w->kind == NAME_NATIVE;
	int frame = w->frame_bytes ? FRAME_COMPLETE : FRAME_POINTER;
	u64 pc = s->state.pc;

	if (is_method && s->is_return_address) {
		skip_breadcrumb(s, w);
		pc = undo_deoptimization(s, w, pc);
	}
	u32 offset = pc - s->is_return_address - w->code_begin;
	if (!RETURN_ADDRESS_ON_STACK && w->kind == NAME_NATIVE && has_own_fp(s, w))
		frame = FRAME_POINTER;
	if (s->is_leaf)
		frame = is_method ? leaf_frame(s, w) : leaf_stub_frame(s, w);
	/* stubs that save all registers are not where they say before and after: those keep a frame pointer */
	if (step_to_hotspot_caller(frame) &&
	    (is_method || !s->is_leaf || step_to_hotspot_caller(FRAME_POINTER))) {
		count(EF_COUNTER_hotspot_no_caller);
		return 1;
	}
	if (is_method)
		push_hotspot(s, EF_HOTSPOT_COMPILED, w->blob, offset, BLOB_INT(w, w->jvm.compile_id));
	else
		push_hotspot(s, EF_HOTSPOT_STUB, w->blob, offset, w->name);
	return 0;
}

/* Looking for return addresses may have put another mapping into the frame's slot. */
static __always_inline void keep_mapping(struct ef_scratch *s, u32 slot, u64 address)
{
	int again = find_mapping(s, address);

	OPAQUE(again);
	if (again >= 0)
		s->mappings[slot & (EF_MAPPINGS - 1)] = s->mappings[again & (EF_MAPPINGS - 1)];
}

/* Pushes the frame of Java in place of the native one and goes to its caller. Returns 1, or 0 where the frame is none, and
 * nothing has changed. Global, so that it is verified once. */
__noinline int unwind_hotspot(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(HOTSPOT);
	if (!s)
		return 0;
	struct ef_hotspot_state *w = &s->runtimes.hotspot;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	u64 address = s->state.pc - s->is_return_address;

	if (begins_in_sample(s, EF_RUNTIME_HOTSPOT))
		w->is_looked_up = 0;
	if (!w->is_looked_up)
		look_jvm_up(s, w, m);
	if (m->key || !w->jvm.attachment.is_attached)
		return 0;
	if (!is_java_code(w, address)) {
		report_unknown_heap(s, m);
		return 0;
	}
	if (read_hotspot_blob(address))
		return 0;
	if (w->kind == NAME_INTERPRETER ? step_hotspot_interpreter() : step_hotspot_code()) {
		keep_mapping(s, slot, address);
		return 0;
	}
	s->state.runtime_file = w->jvm.attachment.file_key;
	return 1;
}

#endif
