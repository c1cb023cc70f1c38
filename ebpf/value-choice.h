/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Chooses the events whose stack is taken by their values, where these differ much: allocations, durations. An event is taken
 * with a probability p, its value divided by a scale and at most 1, and stands for 1/p events. The sum is right in the mean,
 * and most stacks are of the events that most of the sum comes from. The scale is what --event asks for, 1 unless given. It
 * goes up with each stack above the budget, and down with each window below it.
 */
#ifndef EF_VALUE_CHOICE_H
#define EF_VALUE_CHOICE_H

#include "event.h"
#include "weights.h"

#define MAX_SCALE (1ULL << 40)

/* Of each CPU. */
struct ef_value_rate {
	u64 window_ns; /* when the present window began */
	u64 scale;
	u32 taken; /* in the window */
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ef_value_rate);
} value_rate SEC(".maps");

static __always_inline void begin_value_window(struct ef_value_rate *r, u64 now_ns, u32 budget)
{
	u64 least = config.event.scale ?: 1;

	if (now_ns - r->window_ns >= 20 * WINDOW_NS)
		r->scale = least;
	else if (r->taken < budget)
		r->scale = r->scale / 2 + r->scale / 2 * r->taken / budget;
	if (r->scale < least)
		r->scale = least;
	r->window_ns = now_ns;
	r->taken = 0;
}

/* Counts the event. Returns its weight, 0: no sample is taken of it. A program may ask for 2^64 - 1 bytes, and get none. */
static __always_inline u32 choose_by_value(u64 value, u64 now_ns)
{
	u32 zero = 0, budget = config.event.budget / WINDOWS_A_SECOND ?: 1;
	struct ef_value_rate *r = bpf_map_lookup_elem(&value_rate, &zero);

	if (!is_valid_value(value))
		return 0;
	count_event(value);
	if (!r || !value)
		return 0;
	if (now_ns - r->window_ns >= WINDOW_NS)
		begin_value_window(r, now_ns, budget);
	u32 weight = take_by_chance((r->scale << 16) / value);
	if (!weight)
		return 0;
	add_to_total(EF_EVENT_TOTAL_SAMPLES, 1);
	if (++r->taken > budget && r->scale < MAX_SCALE)
		r->scale += r->scale / 8 + 1;
	return weight;
}

#endif
