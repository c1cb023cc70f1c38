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

/* Behind what was read: nothing but zeros. */
#define NOTHING_AT (2 * EF_MOST_READ)

/* The thread, and the first page that was missing. */
static struct ef_other_thread {
	u64 task;
	u64 missing;
	struct ef_page_key key;
	/* what was read last; twice as long as it can be, for the verifier */
	u8 bytes[NOTHING_AT + EF_MOST_READ] __attribute__((aligned(8)));
} other_thread;

/* NULL: it is not there; noted, unless it can't be had. */
static __always_inline struct ef_kept_page *kept_page(u64 address)
{
	other_thread.key.address = address & ~(EF_KEPT_PAGE_BYTES - 1ULL);
	struct ef_kept_page *page = bpf_map_lookup_elem(&pages, &other_thread.key);

	if (page)
		return page->is_absent ? NULL : page;
	if (!other_thread.missing)
		other_thread.missing = other_thread.key.address;
	return NULL;
}

/* Of one page or of two that are neighbours. 1: a part of it is not there. */
static __always_inline int gather_here(u64 address, u64 size)
{
	struct ef_kept_page *page = kept_page(address);
	u64 at = address & (EF_KEPT_PAGE_BYTES - 1), left = EF_KEPT_PAGE_BYTES - at;
	u64 first = size < left ? size : left, rest = size - first;

	OPAQUE(first);
	OPAQUE(rest);
	if (!page || first > EF_MOST_READ || rest > EF_MOST_READ)
		return 1;
	copy_part(other_thread.bytes, first, page->bytes, sizeof(page->bytes), at);
	if (!rest)
		return 0;
	page = kept_page(address + first);
	if (!page)
		return 1;
	copy_part(other_thread.bytes + first, rest, page->bytes, sizeof(page->bytes), 0);
	return 0;
}

/* Global, so that it is verified once. */
__noinline int gather(u64 address, u64 size)
{
	return gather_here(address, size);
}

/* The length with the NUL that ends it, 0 where a part is not there. */
__noinline int gather_text(u64 address, u64 size)
{
	if (size > EF_MOST_READ || gather_here(address, size))
		return 0;
	for (u32 i = 0; i < EF_MOST_READ && i < size; i++)
		if (!other_thread.bytes[i])
			return i + 1;
	return size;
}

/* What was gathered; zeros where that failed, as the kernel's helper does. */
static __always_inline long take_gathered(void *dst, u32 size, u64 failed)
{
	/* no choice between two numbers: the verifier would go through all that follows for both */
	OPAQUE(failed);
	failed &= 1;
	/* as instructions where it can be: a dynptr takes 16 of the 512 bytes of stack that all frames have */
	if (__builtin_constant_p(size) && size <= 128)
		__builtin_memcpy(dst, other_thread.bytes + failed * NOTHING_AT, size);
	else
		copy_part(dst, size, other_thread.bytes, sizeof(other_thread.bytes), failed * NOTHING_AT);
	return failed;
}

static __always_inline long take_gathered_text(void *dst, u32 size, int length)
{
	take_gathered(dst, size, 0);
	return length;
}

#define USER_READ(dst, size, address) take_gathered((dst), (size), gather((u64)(address), (size)))
#define USER_READ_HERE(dst, size, address) take_gathered((dst), (size), gather_here((u64)(address), (size)))
#define USER_READ_TEXT(dst, size, address) take_gathered_text((dst), (size), gather_text((u64)(address), (size)))
#define SAMPLED_TASK() (*(volatile u64 *)&other_thread.task)
#define SAVED_REGISTERS(task) bpf_task_pt_regs(task)

#endif
