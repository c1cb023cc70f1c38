/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Memory of a thread that does not run: BPF can read that of the running one only, and can't wait for a page. User
 * space puts pages there as they are asked for. Has to be included first, as it takes the place of user-memory.h's own.
 */
#ifndef EF_PAGES_H
#define EF_PAGES_H

#include "../maps.h"
#include "records.h"

/* The longest part of memory that an unwinder reads at a time. */
#define EF_MOST_READ 1024

struct ef_kept_page {
	u8 bytes[EF_KEPT_PAGE_BYTES];
	u64 is_absent;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EF_KEPT_PAGES);
	__type(key, struct ef_page_key);
	__type(value, struct ef_kept_page);
} pages SEC(".maps");

/* The thread, and the first page that was missing. */
struct ef_other_thread {
	u64 task;
	u64 missing;
	u64 place; /* what is written as a pointer is a number when it is read */
	struct ef_page_key key;
	/* what lies in two pages; as long again as the longest, for the verifier */
	u8 joined[2 * EF_MOST_READ];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ef_other_thread);
} other_thread SEC(".maps");

static __always_inline struct ef_other_thread *get_other_thread(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&other_thread, &zero);
}

static __always_inline u64 task_of_other_thread(void)
{
	struct ef_other_thread *o = get_other_thread();
	return o ? o->task : 0;
}

/* NULL: it is not there; noted, unless it can't be had. */
static __always_inline struct ef_kept_page *kept_page(struct ef_other_thread *o, u64 address)
{
	o->key.address = address & ~(EF_KEPT_PAGE_BYTES - 1ULL);
	struct ef_kept_page *page = bpf_map_lookup_elem(&pages, &o->key);

	if (page)
		return page->is_absent ? NULL : page;
	if (!o->missing)
		o->missing = o->key.address;
	return NULL;
}

/* Joins what lies in two pages. 1: a part of it is not there. */
static __always_inline int join(struct ef_other_thread *o, const u8 *begin, u64 first, u64 address, u64 size)
{
	struct ef_kept_page *next = kept_page(o, address + first);
	u64 rest = size - first;

	OPAQUE(first);
	OPAQUE(rest);
	if (!next || first > EF_MOST_READ || rest > EF_MOST_READ)
		return 1;
	bpf_probe_read_kernel(o->joined, first, begin);
	bpf_probe_read_kernel(o->joined + first, rest, next->bytes);
	return 0;
}

/* Where the kernel has that memory, as a number, 0: nowhere. */
static __always_inline u64 find_place(u64 address, u64 size)
{
	struct ef_other_thread *o = get_other_thread();
	struct ef_kept_page *page = o ? kept_page(o, address) : NULL;
	u64 at = address & (EF_KEPT_PAGE_BYTES - 1), left = EF_KEPT_PAGE_BYTES - at;

	if (!page)
		return 0;
	if (size <= left)
		*(volatile u64 *)&o->place = (u64)page->bytes;
	else if (join(o, page->bytes + at, left, address, size))
		return 0;
	else
		*(volatile u64 *)&o->place = (u64)o->joined - at;
	return *(volatile u64 *)&o->place + at;
}

/* Global, so that it is verified once. */
__noinline u64 place_of(u64 address, u64 size)
{
	return find_place(address, size);
}

#define USER_READ(dst, size, address) \
	bpf_probe_read_kernel((dst), (size), (const void *)place_of((u64)(address), (size)))
#define USER_READ_HERE(dst, size, address) \
	bpf_probe_read_kernel((dst), (size), (const void *)find_place((u64)(address), (size)))
#define USER_READ_TEXT(dst, size, address) \
	bpf_probe_read_kernel_str((dst), (size), (const void *)place_of((u64)(address), (size)))
#define SAMPLED_TASK() task_of_other_thread()
#define SAVED_REGISTERS(task) bpf_task_pt_regs(task)

#endif
