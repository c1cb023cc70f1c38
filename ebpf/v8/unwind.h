/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The V8 unwinder. All code that V8 makes or brings along (the interpreter's handlers and built-in functions, which
 * lie in the executable as the "embedded blob", and JIT code in anonymous memory) keeps a frame pointer, so going to
 * the caller is simple. What a frame belongs to stands below its frame pointer:
 *
 *   fp - 8    context, or twice the type of a frame without a JavaScript function
 *   fp - 16   JSFunction
 *   fp - 32   BytecodeArray        interpreted and baseline code, and stale in code entered by on-stack replacement
 *   fp - 40   bytecode offset      the same; baseline: feedback
 *
 * A trace holds the function's SharedFunctionInfo, which garbage collections rarely move, and the bytecode offset or
 * the program counter. Inlined functions, names and lines are found on the host (agent/interpreters/v8).
 *
 * Anonymous memory may be V8's in a process in which V8's file was detected: see ef_process_runtimes.
 */
#ifndef EF_V8_H
#define EF_V8_H

#include "../cookie.h"
#include "../unwind-frame.h"

#define V8_MAP_INSTANCE_TYPE 12
#define V8_SHARED_BYTES 64
/* StackFrame::TypeToMarker(): V8 has about 30 types of frames */
#define V8_MAX_MARKER 512
/* Twice the types of frames that C++ enters V8 by: EntryFrame, ConstructEntryFrame */
#define IS_V8_ENTRY(marker) ((marker) == 2 || (marker) == 4)

enum v8_slot { V8_OFFSET = 0, V8_BYTECODES = 1, V8_FUNCTION = 3, V8_CONTEXT = 4, V8_FP = 5 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, struct ef_v8);
} v8_files SEC(".maps");

#define V8_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_v8_read_failed)

static __always_inline bool is_heap_object(u64 word)
{
	return (word & 3) == 1 && word < USER_ADDRESS_END;
}

/* V8 of the process, where this frame is V8's code. */
static __always_inline struct ef_v8 *enter_v8(struct ef_scratch *s, u32 slot)
{
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	u64 key = s->runtime_files[EF_RUNTIME_V8];
	struct ef_v8 *v8 = bpf_map_lookup_elem(&v8_files, &key);

	if (v8 && m->key && s->table_offset - v8->blob_start >= v8->blob_length)
		return 0;
	return v8;
}

static __always_inline u32 v8_cookie(const struct ef_v8_state *w, const struct ef_v8 *v8)
{
	return cookie_of_2_words(w->shared[(v8->shared_name >> 3) & 7], w->shared[(v8->shared_script >> 3) & 7]);
}

static __always_inline void push_v8(struct ef_scratch *s, u32 tier, u64 operand, u64 word)
{
	push_word(s, FRAME_WORD(EF_FRAME_V8, (u64)tier << 48 | operand));
	push_word(s, word);
	/* addresses of objects mean something in this process only */
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
}

/* Program counter of JIT code in 48 bits; above them what tells its contents apart: code is freed and its place
 * used again. */
static __always_inline u64 v8_code_word(struct ef_v8_state *w, u64 pc, u32 cookie)
{
	u64 hash = cookie;

	if (!V8_READ(w->code, 16, pc - 8))
		hash ^= mix64(w->code[0] ^ mix64(w->code[1]));
	return hash << 48 | (pc & ((1ULL << 48) - 1));
}

/* The SharedFunctionInfo of a JSFunction, its fields in w->shared; 0 if there is none. */
static __always_inline u64 read_shared(struct ef_v8_state *w, const struct ef_v8 *v8, u64 function)
{
	u64 shared = 0;

	if (!is_heap_object(function)) {
		count(EF_COUNTER_v8_not_object);
		return 0;
	}
	if (V8_READ(&shared, 8, function - 1 + v8->function_shared))
		return 0;
	if (!is_heap_object(shared)) {
		count(EF_COUNTER_v8_not_object);
		return 0;
	}
	return V8_READ(w->shared, V8_SHARED_BYTES, shared - 1) ? 0 : shared - 1;
}

static __always_inline bool is_bytecode_array(const struct ef_v8 *v8, u64 object)
{
	u64 map = 0;
	u16 type = 0;

	if (!is_heap_object(object) || V8_READ(&map, 8, object - 1) || !is_heap_object(map))
		return 0;
	return !V8_READ(&type, 2, map - 1 + V8_MAP_INSTANCE_TYPE) && type == v8->bytecode_array_type;
}

/* A built-in function that keeps no frame, called from JIT code: its return address is near the stack pointer, or in
 * its register. */
__noinline u64 find_jit_return_address(void)
{
	if (!HAS_RUNTIME(V8))
		return 0;
	struct ef_scratch *s = get_scratch();
	u64 words[2] = {};
#if RETURN_ADDRESS_ON_STACK
	if (!s || V8_READ(words, 16, s->state.sp))
		return 0;
#else
	if (!s)
		return 0;
	words[0] = words[1] = s->state.leaf.by_dwarf_number[REG_RETURN];
#endif
	for (int i = 0; i < 2; i++) {
		u64 address = words[i] - 1;
		int slot = address < USER_ADDRESS_END ? find_mapping(s, address) : -1;

		OPAQUE(slot);
		if (slot >= 0 && !s->mappings[slot & (EF_MAPPINGS - 1)].key)
			return address;
	}
	return 0;
}

static __always_inline int push_function(struct ef_scratch *s, struct ef_v8_state *w, const struct ef_v8 *v8,
					 u64 function, u64 pc)
{
	u64 shared = read_shared(w, v8, function);
	if (!shared)
		return 0;
	u32 cookie = v8_cookie(w, v8);
	if (pc)
		push_v8(s, EF_V8_JIT, shared, v8_code_word(w, pc, cookie));
	else
		push_v8(s, EF_V8_FUNCTION, shared, cookie);
	return 1;
}

enum v8_leaf { V8_HAS_FRAME = 0, V8_BEGINS = 1, V8_ENDS = 2 };

/* Has the leaf no frame of its own, being at its first or last instruction? Then says what the caller's stack pointer
 * and program counter are. */
#if RETURN_ADDRESS_ON_STACK
/* push rbp; mov rbp, rsp; push rsi; push rdi: how every compiled JavaScript function begins */
#define V8_PROLOGUE 0x5756e5894855ULL
#define V8_PROLOGUE_BYTES 6

static __always_inline int find_v8_caller(struct ef_scratch *s, bool is_jit, u64 *sp, u64 *pc)
{
	int leaf = V8_BEGINS;
	u64 code = 0, at = s->state.sp;

	if (V8_READ(&code, 8, s->state.pc))
		return V8_HAS_FRAME;
	if ((code & 0xffffffffffULL) == V8_PROLOGUE >> 8)
		at += 8; /* rbp has been pushed */
	else if (is_jit && ((code & 0xff) == 0xc3 || (code & 0xff) == 0xc2))
		leaf = V8_ENDS; /* ret */
	else if ((code & ((1ULL << (8 * V8_PROLOGUE_BYTES)) - 1)) != V8_PROLOGUE)
		return V8_HAS_FRAME;
	*sp = at + 8;
	return V8_READ(pc, 8, at) ? V8_HAS_FRAME : leaf;
}
#else
/* stp x29, x30, [sp, #-16]!; mov x29, sp; stp xzr, x0, [sp, #-32]!; stp x1, x27, [sp, #16] */
#define V8_PROLOGUE 0x910003fda9bf7bfdULL
#define V8_PROLOGUE_2 0xa9016fe1a9be03ffULL
#define V8_RET 0xd65f03c0

static __always_inline int find_v8_caller(struct ef_scratch *s, bool is_jit, u64 *sp, u64 *pc)
{
	u64 code[2] = {};

	*sp = s->state.sp;
	*pc = s->state.leaf.by_dwarf_number[REG_RETURN];
	if (V8_READ(code, 16, s->state.pc))
		return V8_HAS_FRAME;
	if (code[0] == V8_PROLOGUE && code[1] == V8_PROLOGUE_2)
		return V8_BEGINS;
	if (is_jit && (u32)code[0] == V8_RET)
		return V8_ENDS;
	if (code[0] != (V8_PROLOGUE >> 32 | V8_PROLOGUE_2 << 32) || (u32)code[1] != V8_PROLOGUE_2 >> 32)
		return V8_HAS_FRAME;
	*sp += 16; /* the pair has been stored */
	return V8_BEGINS;
}
#endif

static __always_inline int step_leaf_without_frame(struct ef_scratch *s, struct ef_v8_state *w,
						   const struct ef_v8 *v8, bool is_jit)
{
	u64 pc = s->state.pc, caller_sp = 0, caller_pc = 0;
	int leaf = find_v8_caller(s, is_jit, &caller_sp, &caller_pc);

	if (leaf == V8_HAS_FRAME)
		return 0;
	if (leaf == V8_ENDS)
		push_v8(s, EF_V8_JIT, 0, v8_code_word(w, pc, 0));
	else if (!push_function(s, w, v8, s->state.leaf.by_dwarf_number[REG_V8_FUNCTION], is_jit ? pc : 0))
		return 0;
	s->state.sp = caller_sp;
	s->state.pc = caller_pc;
	return 1;
}

/* A frame of a built-in function whose caller the native unwinder would not find: C++ called JavaScript, and more was saved than
 * the frame's pair, or it has changed stacks. */
static __always_inline int push_v8_entry(struct ef_scratch *s, u64 key)
{
	push_word(s, FRAME_WORD(EF_FRAME_FILE, s->table_offset));
	push_word(s, key);
	s->state.user_frames++;
	return 1;
}

/* WebAssembly that may wait has a stack of its own, and leaves it for the thread's while it calls JavaScript or C++: the frame in which
 * a built-in function does so lies anywhere. */
static __always_inline bool is_on_other_stack(const struct ef_scratch *s)
{
	return s->state.fp < s->state.sp || s->state.fp - s->state.sp > FRAME_POINTER_REACH;
}

static __always_inline bool is_frame_type(u64 marker)
{
	return marker && !(marker & 1) && marker < V8_MAX_MARKER;
}

static __always_inline int push_v8_frame(struct ef_scratch *s, struct ef_v8_state *w, const struct ef_v8 *v8,
					 u64 pc, u64 key)
{
	bool is_jit = !key;
	u64 *slots = w->slots;
	u64 function = slots[V8_FUNCTION];
	/* what lies below the stack pointer has not been pushed yet */
	bool has_bytecodes = !s->is_leaf || s->state.fp - 40 >= s->state.sp;

	if (is_on_other_stack(s))
		return is_frame_type(slots[V8_CONTEXT]) ? push_v8_entry(s, key) : 0;
	if (!(slots[V8_CONTEXT] & 1)) {
		if (!is_jit && V8_ENTRY_SAVES > 0 && IS_V8_ENTRY(slots[V8_CONTEXT]))
			return push_v8_entry(s, key);
		if (!is_jit)
			return 0; /* a stub of the blob: it has a name as native code */
		if (slots[V8_CONTEXT] >= V8_MAX_MARKER)
			return 0; /* not one of V8's frames, or not a whole one yet */
		u64 type = slots[V8_CONTEXT] >> 1;
		/* WebAssembly's frames have their instance in the function's place */
		u64 instance = type == v8->wasm_frame && is_heap_object(function) ? function - 1 : 0;
		push_v8(s, EF_V8_STUB, instance, type << 48 | (pc & ((1ULL << 48) - 1)));
		return 1;
	}
	if (is_jit)
		return push_function(s, w, v8, function, pc);
	if (!has_bytecodes || !is_bytecode_array(v8, slots[V8_BYTECODES]))
		return push_function(s, w, v8, function, s->is_leaf ? find_jit_return_address() : 0);
	if (slots[V8_OFFSET] & 1)
		return push_function(s, w, v8, function, s->is_leaf ? find_jit_return_address() : 0);
	u64 shared = read_shared(w, v8, function);
	if (!shared)
		return 0;
	/* a small integer has its value in the upper half */
	push_v8(s, EF_V8_INTERPRETED, shared, (slots[V8_OFFSET] >> 32) << 32 | v8_cookie(w, v8));
	return 1;
}

/* Pushes the JavaScript function of this frame in place of the native frame and goes to its caller. Returns 1, or 0
 * where the frame is none, and nothing has changed. Global, so that it is verified once. */
__noinline int unwind_v8(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(V8);
	if (!s)
		return 0;
	struct ef_v8_state *w = &s->runtimes.v8;
	u64 key = s->mappings[slot & (EF_MAPPINGS - 1)].key;
	bool is_jit = !key;
	u64 pc = s->state.pc - s->is_return_address;
	struct ef_v8 *v8 = enter_v8(s, slot);

	if (!v8 || s->state.fp & 7 || (is_on_other_stack(s) && (s->is_leaf || is_jit)))
		return 0;
	if (s->is_leaf && step_leaf_without_frame(s, w, v8, is_jit))
		return 1;
	if (V8_READ(w->slots, sizeof(w->slots), s->state.fp - 40))
		return 0;
	/* the frame is being built: its function is still in a register */
	if (s->is_leaf && s->state.fp - 16 < s->state.sp && is_jit)
		w->slots[V8_CONTEXT] = 1, w->slots[V8_FUNCTION] = s->state.leaf.by_dwarf_number[REG_V8_FUNCTION];
	if (!push_v8_frame(s, w, v8, pc, key))
		return 0;
	s->state.runtime_file = s->runtime_files[EF_RUNTIME_V8];
	u64 at = s->state.fp;
	s->state.fp = w->slots[V8_FP];
	s->state.sp = at + 16 + (!is_jit && IS_V8_ENTRY(w->slots[V8_CONTEXT]) ? V8_ENTRY_SAVES : 0);
	if (V8_READ(&s->state.pc, 8, at + 8)) {
		s->state.pc = 0;
		cut(s, EF_MARKER_STACK_READ);
	}
	return 1;
}

#endif
