/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Where the JVM's code is, and what a piece of it is: see unwind.h. */
#ifndef EF_HOTSPOT_BLOBS_H
#define EF_HOTSPOT_BLOBS_H

#include "../attach.h"
#include "../cookie.h"
#include "../unwind-frame.h"

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
enum hotspot_slot {
	SLOT_METHOD = INTERPRETED_WORDS - 3,
	SLOT_SENDER_SP = INTERPRETED_WORDS - 1,
	SLOT_FP = INTERPRETED_WORDS,
	SLOT_RETURN = INTERPRETED_WORDS + 1,
};

/* The name of a blob, as far as it says what it is: "nmethod", "native nmethod", "Interpreter", "StubRoutines" */
enum hotspot_name {
	NAME_NMETHOD = 0x74656d6e,
	NAME_NATIVE = 0x6974616e,
	NAME_INTERPRETER = 0x65746e49,
	NAME_STUBS = 0x62757453,
	NAME_OTHER = 0,
};

#define HOTSPOT_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_hotspot_read_failed)
#define HOTSPOT_WORD(address) user_word((address), EF_COUNTER_hotspot_read_failed)

/* Fields of the blob. What user space says is aligned and inside; the verifier wants to see it. */
#define BLOB_WORD(w, at) (*(u64 *)((char *)(w)->head + ((at) & (HOTSPOT_HEAD_BYTES - 8))))
#define BLOB_INT(w, at) (*(u32 *)((char *)(w)->head + ((at) & (HOTSPOT_HEAD_BYTES - 4))))
#define BLOB_SHORT(w, at) (*(u16 *)((char *)(w)->head + ((at) & (HOTSPOT_HEAD_BYTES - 2))))

/* Copies what is known of the process into `w`; asks user space where that is nothing yet. */
static __always_inline void look_jvm_up(struct ef_scratch *s, struct ef_hotspot_state *w,
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
	struct ef_scratch *s = RUNTIME_SCRATCH(HOTSPOT);
	if (!s)
		return 1;
	struct ef_hotspot_state *w = &s->runtimes.hotspot;
	u32 heap = find_heap(&w->jvm, address);
	if (heap >= w->jvm.heap_count || heap >= EF_HOTSPOT_HEAPS)
		return 1;
	u64 start = w->jvm.heaps[heap].start, map = w->jvm.heaps[heap].segments;
	u32 shift = w->jvm.segment_shift & 31;
	u64 segment = (address - start) >> shift;
	u8 back = HOTSPOT_FREE_SEGMENT;

	for (int i = 0; i < HOTSPOT_MAX_HOPS; i++) {
		if (HOTSPOT_READ(&back, 1, map + segment))
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
	if (HOTSPOT_READ(w->head, EF_HOTSPOT_BLOB_BYTES, w->blob))
		return 1;
	u64 begin = w->jvm.has_code_offset ? w->blob + BLOB_INT(w, w->jvm.code_begin) :
					     BLOB_WORD(w, w->jvm.code_begin);
	w->code_begin = begin;
	w->name = BLOB_WORD(w, w->jvm.name);
	/* none, or -1 where the frame is not the same everywhere */
	__s32 words = BLOB_INT(w, w->jvm.frame_size);
	w->frame_bytes = words > 0 && words < (__s32)HOTSPOT_MAX_FRAME_WORDS ? words * 8 : 0;
	u64 name = 0;
	if (HOTSPOT_READ(&name, 8, w->name))
		return 1;
	w->kind = name;
	/* "native signature handlers" */
	if (w->kind == NAME_NATIVE && name >> 56 != 'n')
		w->kind = NAME_OTHER;
	return 0;
}

static __always_inline void push_hotspot(struct ef_scratch *s, u32 code, u64 address, u32 high, u32 low)
{
	push_word(s, FRAME_WORD(EF_FRAME_HOTSPOT, (u64)code << 48 | (address & ((1ULL << 48) - 1))));
	push_word(s, (u64)high << 32 | low);
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
}

/* A class that is unloaded leaves its place to the next one, which may put a method of its own where the old one was: the class's name
 * tells them apart, of which a Symbol has a random number. `sizes`: of the bytecodes, and what follows. Global, so that it is verified
 * once. */
__noinline u64 hotspot_cookie(u64 constants, u32 sizes)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(HOTSPOT);
	if (!s)
		return 0;
	const struct ef_hotspot *jvm = &s->runtimes.hotspot.jvm;
	u64 pool = HOTSPOT_WORD(constants + jvm->const_pool);
	u64 symbol = HOTSPOT_WORD(HOTSPOT_WORD(pool + jvm->pool_class) + jvm->class_name);

	return cookie_of_4_words(constants, sizes, symbol, HOTSPOT_WORD(symbol) >> (jvm->symbol_shift & 63));
}

/* Pushes the method of an interpreted frame; 1 where it is none. bcp: candidates, the better one first; 0: before the
 * first bytecode. */
static __always_inline int push_interpreted(struct ef_scratch *s, struct ef_hotspot_state *w, u64 method, u64 bcp,
					    u64 bcp2)
{
	u64 constants = 0;
	u32 sizes = 0;

	if (USER_READ(&constants, 8, method + w->jvm.method_const) ||
	    USER_READ(&sizes, 4, constants + w->jvm.const_code_size))
		return 1;
	u16 size = sizes;
	u64 codes = constants + w->jvm.const_bytes, bci = EF_HOTSPOT_NO_BCI;
	if (bcp - codes < size)
		bci = bcp - codes;
	else if (bcp2 - codes < size)
		bci = bcp2 - codes;
	else if (bcp2)
		return 1; /* a native method has none */
	push_hotspot(s, EF_HOTSPOT_INTERPRETED, method, bci, hotspot_cookie(constants, sizes));
	return 0;
}

static __always_inline bool is_code(struct ef_scratch *s, u64 address)
{
	address = CODE_ADDRESS(address);
	return address < USER_ADDRESS_END && find_mapping(s, address - 1) >= 0;
}

/* The address of code of the JVM's own? */
static __always_inline bool is_java_code(const struct ef_hotspot_state *w, u64 address)
{
	return find_heap(&w->jvm, address) < w->jvm.heap_count;
}

#endif
