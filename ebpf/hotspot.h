/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The HotSpot unwinder: Java. All code that the JVM makes lies in its code heaps, anonymous memory that is divided into
 * segments. A byte for each segment says how far back the block begins that it belongs to; behind the block's header
 * stands a CodeBlob, which says what the code is, how large its frames are, and from where on they are complete.
 *
 *   interpreter   one blob for all of it; a frame is found by fp, and says which Method it runs, and where:
 *                 fp + 8 return address, fp caller's fp, fp - 8 caller's sp, fp - 24 Method, fp - 56 or - 64 bytecode
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

#include "attach.h"
#include "mapping.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct ef_process_id);
	__type(value, struct ef_hotspot);
} hotspot_jvms SEC(".maps");

/* Steps back through the segment map. One reaches over 254 segments of 64 or 128 bytes; blocks that were freed and joined
 * leave shorter ones. */
#define HOTSPOT_MAX_HOPS 32
#define HOTSPOT_FREE_SEGMENT 0xff
/* A larger frame, or a caller's stack pointer that is further away, is taken for garbage. */
#define HOTSPOT_REACH (1ULL << 20)
#define HOTSPOT_MAX_FRAME_WORDS (HOTSPOT_REACH / 8)
/* What a mask of two's power keeps offsets in; less of it is filled */
#define HOTSPOT_HEAD_BYTES 512
_Static_assert(EF_HOTSPOT_BLOB_BYTES <= HOTSPOT_HEAD_BYTES, "the head that is read");
/* Words of an interpreted frame below fp that say what it is, and the pair at fp */
#define INTERPRETED_WORDS 8
/* What calls of C push below their frame for a moment, bytes */
#define HOTSPOT_NATIVE_PUSHES 64
/* Slots beyond the expected one in which a return address is looked for */
#define HOTSPOT_CANDIDATES 4

enum hotspot_slot { SLOT_METHOD = 5, SLOT_SENDER_SP = 7, SLOT_FP = 8, SLOT_RETURN = 9 };

/* The name of a blob, as far as it tells what it is: "nmethod", "native nmethod", "Interpreter", "StubRoutines" */
enum hotspot_name {
	NAME_NMETHOD = 0x74656d6e,
	NAME_NATIVE = 0x6974616e,
	NAME_INTERPRETER = 0x65746e49,
	NAME_STUBS = 0x62757453,
};

/* Where the caller's state is, seen from a frame that is not in the interpreter. */
enum hotspot_frame {
	FRAME_COMPLETE,  /* at the end of the frame, fp below the return address */
	FRAME_ALLOCATED, /* the same, but fp has not been saved yet */
	FRAME_PUSHED,    /* [sp] is the caller's fp, the return address follows */
	FRAME_NONE,      /* [sp] is the return address */
	FRAME_POINTER,   /* the usual pair at fp */
};

/* What is known of the sampled process and frame. */
struct ef_hotspot_walk {
	u64 ktime_ns; /* of the sample that all else belongs to */
	u64 is_looked_up;
	struct ef_hotspot jvm;
	/* the frame's blob */
	u64 blob;
	u64 code_begin;
	u64 name; /* address */
	u32 kind; /* how the name begins, enum hotspot_name among others */
	u32 frame_bytes;
	u64 head[HOTSPOT_HEAD_BYTES / 8];
	u64 code[3]; /* from pc - 8 */
	u64 slots[INTERPRETED_WORDS + 2];
	u64 pair[2];
	struct ef_hotspot nothing; /* never written */
};

PER_CPU(hotspot_walks, struct ef_hotspot_walk)

#if HAS_HOTSPOT

static __always_inline long hotspot_read(void *dst, u32 size, u64 address)
{
	long error = USER_READ(dst, size, address);
	if (error)
		count(EF_COUNTER_hotspot_read_failed);
	return error;
}

/* Fields of the blob. What user space says is aligned and inside; the verifier wants to see it. */
#define BLOB_WORD(w, at) (*(u64 *)((char *)(w)->head + ((at) & (HOTSPOT_HEAD_BYTES - 8))))
#define BLOB_INT(w, at) (*(u32 *)((char *)(w)->head + ((at) & (HOTSPOT_HEAD_BYTES - 4))))
#define BLOB_SHORT(w, at) (*(u16 *)((char *)(w)->head + ((at) & (HOTSPOT_HEAD_BYTES - 2))))

/* Copies what is known of the process into `w`; asks user space where that is nothing yet. */
static __always_inline void look_jvm_up(struct ef_scratch *s, struct ef_hotspot_walk *w,
					const struct ef_mapping *m)
{
	struct ef_process_id id = s->sample.process;
	struct ef_hotspot *jvm = bpf_map_lookup_elem(&hotspot_jvms, &id);

	w->is_looked_up = 1;
	w->jvm.attachment.is_attached = 0;
	if (!jvm) {
		bpf_map_update_elem(&hotspot_jvms, &id, &w->nothing, BPF_NOEXIST);
		jvm = bpf_map_lookup_elem(&hotspot_jvms, &id);
	}
	if (!jvm)
		count(EF_COUNTER_runtimes_map_full);
	else if (jvm->attachment.is_attached)
		w->jvm = *jvm;
	else
		ask_to_attach(s, m, &jvm->attachment, EF_RUNTIME_HOTSPOT);
}

/* Heaps are made one after the other as the JVM starts: it may have been attached to too early. */
static __always_inline void report_unknown_heap(struct ef_scratch *s, const struct ef_mapping *m)
{
	struct ef_process_id id = s->sample.process;
	struct ef_hotspot *jvm = bpf_map_lookup_elem(&hotspot_jvms, &id);

	count(EF_COUNTER_hotspot_no_heap);
	if (jvm)
		ask_to_attach(s, m, &jvm->attachment, EF_RUNTIME_HOTSPOT);
}

/* Number of the heap that the address is in, or heap_count. */
static __always_inline u32 find_heap(const struct ef_hotspot *jvm, u64 address)
{
	for (u32 i = 0; i < EF_HOTSPOT_HEAPS; i++) {
		if (i >= jvm->heap_count || address - jvm->heaps[i].start < jvm->heaps[i].length)
			return i;
	}
	return EF_HOTSPOT_HEAPS;
}

/* Finds the blob that the address is in and reads its head; 0, or 1 where there is none. Global, so that it is verified
 * once. */
__noinline int read_hotspot_blob(u64 address)
{
	if (!HAS_RUNTIME(HOTSPOT))
		return 1;
	struct ef_hotspot_walk *w = get_hotspot_walks();
	if (!w)
		return 1;
	u32 heap = find_heap(&w->jvm, address);
	if (heap >= w->jvm.heap_count || heap >= EF_HOTSPOT_HEAPS)
		return 1;
	u64 start = w->jvm.heaps[heap].start, map = w->jvm.heaps[heap].segments;
	u32 shift = w->jvm.segment_shift & 31;
	u64 segment = (address - start) >> shift;
	u8 back = HOTSPOT_FREE_SEGMENT;

	for (int i = 0; i < HOTSPOT_MAX_HOPS; i++) {
		if (hotspot_read(&back, 1, map + segment))
			return 1;
		if (!back || back == HOTSPOT_FREE_SEGMENT || back > segment)
			break;
		segment -= back;
	}
	if (back) {
		count(EF_COUNTER_hotspot_no_blob);
		return 1;
	}
	w->blob = start + (segment << shift) + w->jvm.block_header;
	if (hotspot_read(w->head, EF_HOTSPOT_BLOB_BYTES, w->blob))
		return 1;
	u64 begin = w->jvm.has_code_offset ? w->blob + BLOB_INT(w, w->jvm.code_begin) :
					     BLOB_WORD(w, w->jvm.code_begin);
	w->code_begin = begin;
	w->name = BLOB_WORD(w, w->jvm.name);
	/* none, or -1 where the frame is not the same everywhere */
	__s32 words = BLOB_INT(w, w->jvm.frame_size);
	w->frame_bytes = words > 0 && words < (__s32)HOTSPOT_MAX_FRAME_WORDS ? words * 8 : 0;
	return hotspot_read(&w->kind, 4, w->name) ? 1 : 0;
}

static __always_inline void push_hotspot(struct ef_scratch *s, u32 code, u64 address, u32 high, u32 low)
{
	push_word(s, FRAME_WORD(EF_FRAME_HOTSPOT, (u64)code << 48 | (address & ((1ULL << 48) - 1))));
	push_word(s, (u64)high << 32 | low);
	s->has_anonymous = 1;
	s->has_interpreted = 1;
	s->user_frames++;
}

/* Pushes the method of an interpreted frame; 1 where it is none. bcp: candidates, the better one first; 0: before the
 * first bytecode. */
static __always_inline int push_interpreted(struct ef_scratch *s, struct ef_hotspot_walk *w, u64 method, u64 bcp,
					    u64 bcp2)
{
	u64 constants = 0;
	u16 size = 0;

	if (USER_READ(&constants, 8, method + w->jvm.method_const) ||
	    USER_READ(&size, 2, constants + w->jvm.const_code_size))
		return 1;
	u64 codes = constants + w->jvm.const_bytes, bci = EF_HOTSPOT_NO_BCI;
	if (bcp - codes < size)
		bci = bcp - codes;
	else if (bcp2 - codes < size)
		bci = bcp2 - codes;
	else if (bcp2)
		return 1; /* a native method has none */
	push_hotspot(s, EF_HOTSPOT_INTERPRETED, method, bci, constants >> 3);
	return 0;
}

static __always_inline bool is_code(struct ef_scratch *s, u64 address)
{
	return address < USER_ADDRESS_END && find_mapping(s, address - 1) >= 0;
}

/* The address of code of the JVM's own? */
static __always_inline bool is_java_code(const struct ef_hotspot_walk *w, u64 address)
{
	return find_heap(&w->jvm, address) < w->jvm.heap_count;
}

/*
 * A method is being called: its Method is in a register, and the caller's stack pointer where later the bytecode pointer
 * is. The return address is on top of the stack, or in a register where the parameters are turned into local variables.
 */
static __always_inline int step_called_interpreter(struct ef_scratch *s, struct ef_hotspot_walk *w)
{
	u64 *r = s->leaf.by_dwarf_number;
	u64 pc = r[REG_HOTSPOT_CALLER], sender_sp = r[REG_HOTSPOT_BCP], fp = s->fp;
	u64 reach = s->fp - s->sp;

	if (reach < INTERPRETED_WORDS * 8) {
		/* the frame is being built below the pair */
		if (USER_READ(w->pair, 16, s->fp) || (reach >= 8 && USER_READ(&sender_sp, 8, s->fp - 8)))
			return 1;
		fp = w->pair[0];
		pc = w->pair[1];
	} else if (!USER_READ(w->pair, 8, s->sp) && is_code(s, w->pair[0])) {
		pc = w->pair[0];
	}
	if (sender_sp <= s->sp || sender_sp - s->sp > HOTSPOT_REACH || !is_code(s, pc))
		return 1;
	if (push_interpreted(s, w, r[REG_HOTSPOT_METHOD], 0, 0))
		return 1;
	s->fp = fp;
	s->sp = sender_sp;
	s->pc = pc;
	return 0;
}

/* The frame of the leaf has just been taken down: on top of the stack is the return address. */
static __always_inline int step_left_interpreter(struct ef_scratch *s, struct ef_hotspot_walk *w)
{
	if (!s->is_leaf || USER_READ(w->pair, 8, s->sp) || !is_java_code(w, w->pair[0])) {
		count(EF_COUNTER_hotspot_bad_frame);
		return 1;
	}
	push_hotspot(s, EF_HOTSPOT_STUB, w->blob, s->pc - w->code_begin, w->name);
	s->sp += 8;
	s->pc = w->pair[0];
	return 0;
}

/* Global, so that it is verified once; 0, or 1 where the frame makes no sense. */
__noinline int step_hotspot_interpreter(u32 unused)
{
	if (!HAS_RUNTIME(HOTSPOT))
		return 1;
	struct ef_scratch *s = get_scratch();
	struct ef_hotspot_walk *w = get_hotspot_walks();
	if (!s || !w)
		return 1;
	u64 in_register = s->leaf.by_dwarf_number[REG_HOTSPOT_BCP];

	if (s->is_leaf && (s->fp - s->sp < INTERPRETED_WORDS * 8 || in_register - s->sp < HOTSPOT_REACH) &&
	    !step_called_interpreter(s, w))
		return 0;
	if (s->fp < s->sp || s->fp - s->sp > HOTSPOT_REACH || s->fp & 7 ||
	    USER_READ(w->slots, sizeof(w->slots), s->fp - INTERPRETED_WORDS * 8))
		return step_left_interpreter(s, w);
	u64 saved = w->slots[(INTERPRETED_WORDS - w->jvm.bcp_slot) & 7];
	u64 sender_sp = w->slots[SLOT_SENDER_SP];
	if (sender_sp <= s->fp || sender_sp - s->fp > HOTSPOT_REACH ||
	    push_interpreted(s, w, w->slots[SLOT_METHOD], s->is_leaf ? in_register : saved, saved))
		return step_left_interpreter(s, w);
	s->sp = sender_sp;
	s->fp = w->slots[SLOT_FP];
	s->pc = w->slots[SLOT_RETURN];
	return 0;
}

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
static __always_inline int frame_in_prologue(struct ef_hotspot_walk *w, u64 pc, u64 complete_at)
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
static __always_inline int frame_in_epilogue(struct ef_hotspot_walk *w)
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

/* Where the code of a blob gets its frame, 0: nowhere, or it is not known. */
static __always_inline u64 complete_at(const struct ef_hotspot_walk *w)
{
	s64 offset = w->jvm.has_short_complete ? (__s16)BLOB_SHORT(w, w->jvm.frame_complete) :
						 (__s32)BLOB_INT(w, w->jvm.frame_complete);
	return offset > 0 ? w->code_begin + offset : 0;
}

static __always_inline int leaf_frame(struct ef_scratch *s, struct ef_hotspot_walk *w)
{
	u64 complete = complete_at(w);

	if (USER_READ(w->code, sizeof(w->code), s->pc - 8))
		return FRAME_COMPLETE;
	if (s->pc < complete)
		return frame_in_prologue(w, s->pc, complete);
	/* calls of C keep a frame pointer, and look for exceptions between leave and ret */
	if (w->kind == NAME_NATIVE && s->fp - s->sp > w->frame_bytes + HOTSPOT_NATIVE_PUSHES)
		return FRAME_NONE;
	return frame_in_epilogue(w);
}

/* Handwritten code: push %rbp; mov %rsp,%rbp comes first and leave; ret last, or there is no frame at all. */
static __always_inline int leaf_stub_frame(struct ef_scratch *s, struct ef_hotspot_walk *w)
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
	if (w->kind != NAME_STUBS && !USER_READ(w->pair, 8, s->sp) && is_java_code(w, w->pair[0]))
		return FRAME_NONE;
	if (s->fp - s->sp > HOTSPOT_REACH || USER_READ(w->pair, 16, s->fp) || !is_code(s, w->pair[1]))
		return FRAME_NONE;
	return FRAME_POINTER;
}

/* Goes to the caller; 1 where no return address is found. Where code that aligns its stack for a call has left a gap
 * the return address is further up. Global, so that it is verified once. */
__noinline int step_to_hotspot_caller(u32 frame)
{
	if (!HAS_RUNTIME(HOTSPOT))
		return 1;
	struct ef_scratch *s = get_scratch();
	struct ef_hotspot_walk *w = get_hotspot_walks();
	if (!s || !w)
		return 1;
	u64 at = s->sp;

	if (frame == FRAME_POINTER) {
		at = s->fp + 8;
		if (s->fp < s->sp || s->fp - s->sp > HOTSPOT_REACH || s->fp & 7)
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
		if (is_code(s, w->pair[1])) {
			if (frame != FRAME_NONE && frame != FRAME_ALLOCATED)
				s->fp = w->pair[0];
			s->sp = at + 8;
			s->pc = w->pair[1];
			return 0;
		}
		at += 8;
	}
	return 1;
}

/* The return address was replaced by that of the nmethod's handler, since its code is not valid any more: what it was is
 * in the frame. */
static __always_inline u64 undo_deoptimization(struct ef_scratch *s, struct ef_hotspot_walk *w, u64 pc)
{
	u64 deopt = BLOB_WORD(w, w->jvm.deopt), deopt2 = 0, original = 0;

	if (w->jvm.has_deopt_offset)
		deopt = w->blob + BLOB_INT(w, w->jvm.deopt);
	if (w->jvm.deopt_method_handle)
		deopt2 = w->jvm.has_deopt_offset ? w->blob + BLOB_INT(w, w->jvm.deopt_method_handle) :
						   BLOB_WORD(w, w->jvm.deopt_method_handle);
	if (pc != deopt && pc != deopt2)
		return pc;
	u64 at = s->sp + (s64)(__s32)BLOB_INT(w, w->jvm.orig_pc);
	return hotspot_read(&original, 8, at) || original - w->code_begin > 1U << 31 ? pc : original;
}

/* Compiled methods and stubs. Global, so that it is verified once; 0, or 1 where the caller is not found. */
__noinline int step_hotspot_code(u32 unused)
{
	if (!HAS_RUNTIME(HOTSPOT))
		return 1;
	struct ef_scratch *s = get_scratch();
	struct ef_hotspot_walk *w = get_hotspot_walks();
	if (!s || !w)
		return 1;
	bool is_method = w->kind == NAME_NMETHOD || w->kind == NAME_NATIVE;
	int frame = w->frame_bytes ? FRAME_COMPLETE : FRAME_POINTER;
	u64 pc = s->pc;

	if (is_method && s->is_return_address)
		pc = undo_deoptimization(s, w, pc);
	u32 offset = pc - s->is_return_address - w->code_begin;
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
	if (!HAS_RUNTIME(HOTSPOT))
		return 0;
	struct ef_scratch *s = get_scratch();
	struct ef_hotspot_walk *w = get_hotspot_walks();
	if (!s || !w)
		return 0;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	u64 address = s->pc - s->is_return_address;

	if (w->ktime_ns != s->sample.ktime_ns) {
		w->ktime_ns = s->sample.ktime_ns;
		w->is_looked_up = 0;
	}
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
	if (w->kind == NAME_INTERPRETER ? step_hotspot_interpreter(0) : step_hotspot_code(0)) {
		keep_mapping(s, slot, address);
		return 0;
	}
	s->trace.runtime_file = w->jvm.attachment.file_key;
	return 1;
}

#else

__noinline int unwind_hotspot(u32 slot)
{
	return 0;
}

#endif
#endif
