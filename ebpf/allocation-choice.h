/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Of which allocations the stack is taken: p is the number of bytes divided by a scale, at most 1, and one that is taken stands for
 * 1/p of its size. The sum is right in the mean, and stacks go to where the bytes are. The scale is what --event asks for, and
 * goes up at once with each stack above the budget, and down again with each window below it.
 */
#ifndef EF_ALLOCATION_CHOICE_H
#define EF_ALLOCATION_CHOICE_H

#include "event.h"
#include "weights.h"

#define MAX_SCALE_BYTES (1ULL << 40)

/* Of each CPU. */
struct ef_allocation_rate {
	u64 window_ns; /* when the present window began */
	u64 scale_bytes;
	u32 taken; /* in the window */
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ef_allocation_rate);
} allocation_rate SEC(".maps");

static __always_inline void begin_allocation_window(struct ef_allocation_rate *r, u64 now_ns, u32 budget)
{
	u64 least = config.event.scale ?: 1;

	if (now_ns - r->window_ns >= 20 * WINDOW_NS)
		r->scale_bytes = least;
	else if (r->taken < budget)
		r->scale_bytes = r->scale_bytes / 2 + r->scale_bytes / 2 * r->taken / budget;
	if (r->scale_bytes < least)
		r->scale_bytes = least;
	r->window_ns = now_ns;
	r->taken = 0;
}

/* Counts the allocation; its weight, 0: no sample is taken of it. */
static __always_inline u32 choose_allocation(u64 bytes, u64 now_ns)
{
	u32 zero = 0, budget = config.event.budget / WINDOWS_A_SECOND ?: 1;
	struct ef_allocation_rate *r = bpf_map_lookup_elem(&allocation_rate, &zero);

	count_event(bytes);
	if (!r || !bytes)
		return 0;
	if (now_ns - r->window_ns >= WINDOW_NS)
		begin_allocation_window(r, now_ns, budget);
	u32 weight = take_by_chance((r->scale_bytes << 16) / bytes);
	if (!weight)
		return 0;
	add_to_total(EF_EVENT_TOTAL_SAMPLES, 1);
	if (++r->taken > budget && r->scale_bytes < MAX_SCALE_BYTES)
		r->scale_bytes += r->scale_bytes / 8 + 1;
	return weight;
}

#endif
