/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From an offset in a file to its unwind rule: the layout is described in records.h. Three look-ups in the
 * file's own array of 16 KiB blocks: directory, rows, rule; the search itself makes no call. */
#ifndef EF_TABLE_H
#define EF_TABLE_H

#include "memory.h"

struct row_block {
	u32 rows[EF_BLOCK_ROWS];
};

#define ROW_OFFSET(block, row) ((block)->rows[(row) & (EF_BLOCK_ROWS - 1)] & 0xfff)
#define NEAR_ROWS 8
/* EF_BLOCK_ROWS is 2 to that power */
#define BLOCK_ROW_BITS (EF_BLOCK_BITS - 2)
/* 1 or 0, of numbers below 2^31 */
#define NOT_ABOVE(a, b) (1 - (((b) - (a)) >> 31))

static __always_inline u8 *table_block(void *table, u32 byte_offset)
{
	u32 block = byte_offset >> EF_BLOCK_BITS;
	return bpf_map_lookup_elem(table, &block);
}

/*
 * Rules that were found last on this CPU. Between two ticks a busy machine turns its caches over: each of the look-ups
 * below then waits for memory, and together they take half a microsecond. Most return addresses were met before, and
 * what is kept of them is one cache line away: docs/decisions/unwinding/unwind-rule-cache.md.
 *
 * What a key and an offset lead to never changes: a file's key holds its change time, that of a JIT's table a hash of
 * the code. All contexts of a CPU use the same entries, and one may interrupt another between any two words: an entry is
 * taken only where its words belong together, which `check` says.
 */
struct ef_found_rule {
	u64 key;
	u64 check; /* of key, offset and rule */
	union {
		struct ef_rule rule;
		u64 words[2];
	};
};
_Static_assert(sizeof(struct ef_rule) == 16, "a rule is two words");
#define EF_FOUND_RULES 1024

struct ef_found_rules {
	struct ef_found_rule at[EF_FOUND_RULES];
};
_Static_assert(sizeof(struct ef_found_rules) <= 32768, "a per-CPU array's value may have 32 KiB");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ef_found_rules);
} found_rules SEC(".maps");

static __always_inline u64 hash_of_place(u64 key, u64 offset)
{
	return (offset ^ key) * 0x9e3779b97f4a7c15ULL;
}

static __always_inline struct ef_found_rule *rule_at(u64 hash)
{
	u32 zero = 0;
	struct ef_found_rules *found = bpf_map_lookup_elem(&found_rules, &zero);

	return found ? &found->at[(hash >> 40) & (EF_FOUND_RULES - 1)] : NULL;
}

static __always_inline u64 check_of_rule(u64 hash, u64 word0, u64 word1)
{
	return hash ^ (word0 ^ word1 * 0xff51afd7ed558ccdULL) * 0xc4ceb9fe1a85ec53ULL;
}

/* Copies the rule that covers scratch->table_offset to scratch->rule; 1 where the table says nothing about it. */
static __always_inline int search_table(struct ef_scratch *s, const struct ef_file_entry *file)
{
	u32 page = (u32)(s->table_offset >> EF_PAGE_BITS) - file->first_page;
	u32 low = s->table_offset & ((1 << EF_PAGE_BITS) - 1);
	u32 table_id = file->table;

	if (page >= file->page_count)
		return 1;
	void *table = bpf_map_lookup_elem(&tables, &table_id);
	if (!table)
		return 1;

	u32 at = page * sizeof(struct ef_page);
	u8 *block = table_block(table, at);
	if (!block)
		return 1;
	struct ef_page *entry = (void *)(block + (at & (EF_BLOCK_BYTES - sizeof(struct ef_page))));
	u32 end = entry->rows;
	if (!end)
		return 1;

	at = file->rows_at + entry->first_row * 4;
	block = table_block(table, at);
	if (!block)
		return 1;
	struct row_block *rows = (void *)block;
	u32 base = (at & (EF_BLOCK_BYTES - 1)) >> 2;
	/* code is as dense in most of a page as in the rest: a look at both ends of a cache line spares three others */
	u32 guess = (low * end) >> EF_PAGE_BITS;
	u32 from = guess > NEAR_ROWS ? guess - NEAR_ROWS : 0, to = guess + NEAR_ROWS;
	u32 row = base, count = end;
	if (to < end && ROW_OFFSET(rows, base + from) <= low && ROW_OFFSET(rows, base + to) > low) {
		row += from;
		count = to - from;
	}
	/* the last row that is not above is one of `count`; without a branch, or each round would double what the
	 * verifier walks through */
	for (int i = 0; i < BLOCK_ROW_BITS; i++) {
		u32 half = count >> 1;
		row += half * NOT_ABOVE(ROW_OFFSET(rows, row + half), low);
		count -= half;
	}
	u32 rule = rows->rows[row & (EF_BLOCK_ROWS - 1)] >> 16;

	at = file->rules_at + rule * sizeof(struct ef_rule);
	block = table_block(table, at);
	if (!block)
		return 1;
	s->rule = *(struct ef_rule *)(block + (at & (EF_BLOCK_BYTES - sizeof(struct ef_rule))));
	return s->rule.kind == EF_RULE_INVALID;
}

/* Finds the rule that covers scratch->table_offset in the file of mapping `slot` and copies it to
 * scratch->rule. Returns 0, or 1 where the table says nothing about the address. */
__noinline int find_rule(u32 slot)
{
	struct ef_scratch *s = get_scratch();
	if (!s)
		return 1;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	u64 key = m->table_key, hash = hash_of_place(key, s->table_offset);
	struct ef_found_rule *found = rule_at(hash);
	u64 *rule = (u64 *)&s->rule;

	if (!found)
		return 1;
	rule[0] = found->words[0];
	rule[1] = found->words[1];
	if (found->key == key && found->check == check_of_rule(hash, rule[0], rule[1]))
		return 0;
	s->rule.kind = EF_RULE_INVALID;
	if (search_table(s, &m->file))
		return 1;
	found->key = key;
	found->check = check_of_rule(hash, rule[0], rule[1]);
	found->words[0] = rule[0];
	found->words[1] = rule[1];
	return 0;
}

#endif
