/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From an offset in a file to its unwind rule: the layout is described in records.h. Three look-ups in the
 * file's own array of 16 KiB blocks: directory, rows, rule; the search itself makes no call. */
#ifndef EF_TABLE_H
#define EF_TABLE_H

#include "maps.h"

struct row_block {
	u32 rows[EF_BLOCK_ROWS];
};

static __always_inline u8 *table_block(void *table, u32 byte_offset)
{
	u32 block = byte_offset >> EF_BLOCK_BITS;
	return bpf_map_lookup_elem(table, &block);
}

/* Finds the rule that covers scratch->table_offset in the file of mapping `slot` and copies it to
 * scratch->rule. Returns 0, or 1 where the table says nothing about the address. */
__noinline int find_rule(u32 slot)
{
	struct ef_scratch *s = get_scratch();
	if (!s)
		return 1;
	struct ef_file_entry *file = &s->mappings[slot & (EF_MAPPINGS - 1)].file;
	u32 page = (u32)(s->table_offset >> EF_PAGE_BITS) - file->first_page;
	u32 low = s->table_offset & ((1 << EF_PAGE_BITS) - 1);
	u32 table_id = file->table;

	s->rule.kind = EF_RULE_INVALID;
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
	u32 end = entry->rows, begin = 0;
	if (!end)
		return 1;

	at = file->rows_at + entry->first_row * 4;
	block = table_block(table, at);
	if (!block)
		return 1;
	struct row_block *rows = (void *)block;
	u32 base = (at & (EF_BLOCK_BYTES - 1)) >> 2;
	for (int i = 0; i < 13; i++) {
		if (begin >= end)
			break;
		u32 middle = (begin + end) >> 1;
		if ((rows->rows[(base + middle) & (EF_BLOCK_ROWS - 1)] & 0xfff) <= low)
			begin = middle + 1;
		else
			end = middle;
	}
	u32 rule = rows->rows[(base + begin - 1) & (EF_BLOCK_ROWS - 1)] >> 16;

	at = file->rules_at + rule * sizeof(struct ef_rule);
	block = table_block(table, at);
	if (!block)
		return 1;
	s->rule = *(struct ef_rule *)(block + (at & (EF_BLOCK_BYTES - sizeof(struct ef_rule))));
	return s->rule.kind == EF_RULE_INVALID;
}

#endif
