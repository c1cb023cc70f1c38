/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Where .NET's code is: from an address to its section, and to where its method begins. See unwind.h. */
#ifndef EF_DOTNET_SECTIONS_H
#define EF_DOTNET_SECTIONS_H

#include "../attach.h"
#include "../cookie.h"
#include "../unwind-frame.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct ef_process_id);
	__type(value, struct ef_dotnet);
} dotnet_clrs SEC(".maps");

#define DOTNET_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_dotnet_read_failed)
#define DOTNET_WORD(address) user_word((address), EF_COUNTER_dotnet_read_failed)

/* The map of sections: a tree of 5 levels of 256 pointers over bits 17..56 of an address, below which stand fragments. */
#define DOTNET_LEVELS 5
#define DOTNET_TOP_SHIFT 49
/* Fragments that share 128 KiB: stubs have 64 KiB each. */
#define DOTNET_MAX_FRAGMENTS 8
/* Sections of a list that are looked through. The oldest, CoreLib's, comes last. */
#define DOTNET_MAX_SECTIONS 256
/* Words of the nibble map that are looked through, 512 bytes of code each */
#define DOTNET_MAX_MAP_WORDS 256
#define DOTNET_UNIT 32
/* What stands in a code header where there is no method but a stub */
#define DOTNET_LAST_STUB_KIND 15
/* log2 of the most functions that an image has */
#define DOTNET_SEARCH_STEPS 21

enum dotnet_section { SECTION_NONE, SECTION_JIT, SECTION_PRECOMPILED, SECTION_STUBS };
/* In a list, the latter is an image. */
enum dotnet_section_flags { SECTION_IS_COLLECTIBLE = 1, SECTION_IS_CODE_HEAP = 2, SECTION_IS_RANGE_LIST = 4 };
/* How a section of a list begins */
enum dotnet_list_section { LIST_BEGIN, LIST_END, LIST_MANAGER, LIST_NEXT, LIST_WORDS };
enum dotnet_fragment { FRAGMENT_NEXT, FRAGMENT_BEGIN, FRAGMENT_END, FRAGMENT_SECTION, FRAGMENT_WORDS };

/* Copies what is known of the process into `w`; asks user space where that is nothing yet. */
static __always_inline void look_clr_up(struct ef_scratch *s, struct ef_dotnet_state *w,
					const struct ef_mapping *m)
{
	struct ef_process_id id = s->sample.process;
	struct ef_dotnet *clr = bpf_map_lookup_elem(&dotnet_clrs, &id);

	w->is_looked_up = 1;
	w->begin = w->end = 0;
	w->kept_count = 0;
	w->clr.attachment.is_attached = 0;
	if (!clr) {
		bpf_map_update_elem(&dotnet_clrs, &id, &w->nothing, BPF_NOEXIST);
		clr = bpf_map_lookup_elem(&dotnet_clrs, &id);
	}
	if (!clr)
		count(EF_COUNTER_runtimes_map_full);
	else if (clr->attachment.is_attached)
		w->clr = *clr;
	else
		ask_to_attach(s, m, &clr->attachment, EF_RUNTIME_DOTNET);
}

/* A field of the section that was read. */
#define SECTION_WORD(w, at) ((w)->words[((at) >> 3) & (DOTNET_SECTION_WORDS - 1)])

/* The RangeSection of an address, 0 where there is none: .NET 6 and 7 keep a list. */
static __always_inline u64 find_in_list(struct ef_dotnet_state *w, u64 address)
{
	u64 *head = w->words, node = 0;
	long failed = 0;

	for (u32 i = 0; i < DOTNET_KEPT; i++)
		if (i < w->kept_count && address >= w->kept[i].begin && address < w->kept[i].end)
			return w->kept[i].section;
	if (DOTNET_READ(&node, 8, w->clr.ranges))
		return 0;
	for (u32 i = 0; i < DOTNET_MAX_SECTIONS && node; i++) {
		failed = USER_READ(head, LIST_WORDS * 8, node);
		if (failed || (address >= head[LIST_BEGIN] && address < head[LIST_END]))
			break;
		node = head[LIST_NEXT];
	}
	if (failed)
		count(EF_COUNTER_dotnet_read_failed);
	if (failed || !node || address < head[LIST_BEGIN] || address >= head[LIST_END])
		return 0;
	struct dotnet_kept_section *kept = &w->kept[w->kept_count++ & (DOTNET_KEPT - 1)];
	kept->begin = head[LIST_BEGIN];
	kept->end = head[LIST_END];
	kept->section = node;
	return node;
}

/* The same of a map: marks in the low bits say that it may be unloaded. */
static __always_inline u64 find_in_map(struct ef_dotnet_state *w, u64 address)
{
	u64 node = w->clr.ranges, *fragment = w->words;

	for (u32 i = 0, shift = DOTNET_TOP_SHIFT; i < DOTNET_LEVELS; i++, shift -= 8) {
		if (DOTNET_READ(&w->at, 8, node + (address >> shift & 255) * 8))
			return 0;
		node = w->at & ~1ULL;
		if (!node)
			return 0;
	}
	for (int i = 0; i < DOTNET_MAX_FRAGMENTS && node; i++) {
		if (DOTNET_READ(fragment, FRAGMENT_WORDS * 8, node))
			return 0;
		if (address >= fragment[FRAGMENT_BEGIN] && address < fragment[FRAGMENT_END])
			return fragment[FRAGMENT_SECTION];
		node = fragment[FRAGMENT_NEXT] & ~1ULL;
	}
	return 0;
}

static __always_inline u32 read_code_heap(struct ef_dotnet_state *w)
{
	u64 heap = SECTION_WORD(w, w->clr.section_heap);

	if (DOTNET_READ(&w->map_base, 8, heap + w->clr.heap_map_base) ||
	    DOTNET_READ(&w->map, 8, heap + w->clr.heap_map))
		return SECTION_NONE;
	return SECTION_JIT;
}

static __always_inline u32 read_image(struct ef_dotnet_state *w)
{
	u64 info = 0;

	w->module = SECTION_WORD(w, w->clr.section_module);
	w->function_count = 0;
	if (!w->clr.module_precompiled || DOTNET_READ(&info, 8, w->module + w->clr.module_precompiled) ||
	    DOTNET_READ(&w->functions, 8, info + w->clr.functions) ||
	    DOTNET_READ(&w->function_count, 4, info + w->clr.function_count))
		return SECTION_NONE;
	return SECTION_PRECOMPILED;
}

/* enum dotnet_section; what it says of the section is in the state. Global, so that it is verified once. */
__noinline int find_dotnet_section(u64 address)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(DOTNET);
	if (!s)
		return SECTION_NONE;
	struct ef_dotnet_state *w = &s->runtimes.dotnet;
	if (address >= w->begin && address < w->end)
		return w->kind;
	u64 section = w->clr.has_list ? find_in_list(w, address) : find_in_map(w, address);
	w->begin = w->end = 0;
	if (!section || DOTNET_READ(w->words, sizeof(w->words), section) || address < w->words[0] ||
	    address >= w->words[1])
		return SECTION_NONE;
	w->begin = w->words[0];
	w->end = w->words[1];
	u32 flags = SECTION_WORD(w, w->clr.section_flags);
	w->is_collectible = flags & SECTION_IS_COLLECTIBLE;
	if (flags & SECTION_IS_CODE_HEAP)
		w->kind = read_code_heap(w);
	else if (flags & SECTION_IS_RANGE_LIST && !w->clr.has_list)
		w->kind = SECTION_STUBS;
	else
		w->kind = read_image(w);
	return w->kind;
}

/* Where in a unit of 32 bytes a method begins, in bytes from the start of the map's code, as the last nibble of `nibbles`
 * says, which is that of unit `unit`. */
static __always_inline u64 unit_start(u64 nibbles, u64 unit)
{
	return unit * DOTNET_UNIT + ((nibbles & 15) - 1) * 4;
}

/* An entry of the nibble map that is a pointer: the whole of its 256 bytes belong to the method there. */
static __always_inline bool is_map_pointer(const struct ef_dotnet_state *w, u32 entry)
{
	return w->clr.has_map_pointers && (entry & 15) > 8;
}

/*
 * The nibble map has a nibble for each 32 bytes of code, the first one in the highest bits of an entry of 32 bits: 1..8
 * say that a method begins at 4 * (nibble - 1) there. The method of an address is the last one that begins before it.
 * Returns its offset from the start of the map's code, or -1.
 */
static __always_inline u64 find_in_nibbles(struct ef_dotnet_state *w, u64 offset)
{
	u64 unit = offset / DOTNET_UNIT, nibbles = 0;

	for (u32 i = 0; i < DOTNET_MAX_MAP_WORDS; i++) {
		u32 entry = 0;
		if (DOTNET_READ(&entry, 4, w->map + unit / 8 * 4))
			return -1ULL;
		if (is_map_pointer(w, entry))
			return (entry & ~15U) + ((entry & 15) - 9) * 4;
		nibbles = entry >> (28 - unit % 8 * 4);
		/* what begins in the unit of the address, but behind it, is another method */
		if (!i && (nibbles & 15) && unit_start(nibbles, unit) > offset)
			nibbles &= ~15ULL;
		if (nibbles) {
#pragma unroll
			for (int k = 0; k < 7; k++) {
				if (!(nibbles & 15)) {
					nibbles >>= 4;
					unit--;
				}
			}
			return unit_start(nibbles, unit);
		}
		if (unit < 8)
			return -1ULL;
		unit = (unit | 7) - 8;
	}
	return -1ULL;
}

/* RUNTIME_FUNCTION number `i` of a table. */
static __always_inline int read_function(struct ef_dotnet_state *w, u64 table, u32 i)
{
	return DOTNET_READ(&w->function, sizeof(w->function), table + (u64)i * sizeof(w->function));
}

#endif
