/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Of which events the stack is taken: of all of them, as long as that stays within the budget; else of one in so many,
 * chosen by chance. How many follows from the window before. All are counted.
 */
#ifndef EF_EVENT_CHOICE_H
#define EF_EVENT_CHOICE_H

#include "event.h"
#include "weights.h"

/* Of each event and CPU. */
struct ef_event_rate {
	u64 window_ns; /* when the present window began */
	u32 in_window;
	u32 taken;  /* in the window */
	u32 weight; /* events that a sample stands for */
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EF_MAX_EVENTS);
	__type(key, u32);
	__type(value, struct ef_event_rate);
} event_rates SEC(".maps");

static __always_inline void begin_event_window(struct ef_event_rate *e, u64 now_ns, u32 budget)
{
	u64 windows = (now_ns - e->window_ns) / WINDOW_NS ?: 1;
	u32 weight = e->in_window / windows / budget ?: 1, before = windows < 32 ? e->weight >> windows : 0;

	/* after a burst it comes down by halves: another may follow */
	e->weight = weight > before ? weight : before;
	e->window_ns = now_ns;
	e->in_window = e->taken = 0;
}

/* Counts the event; how many the sample to be taken of it stands for, 0: none is taken. */
static __always_inline u32 choose_event(u64 value, u64 now_ns)
{
	u32 number = config.event.number, budget = config.event.budget / WINDOWS_A_SECOND ?: 1;
	struct ef_event_rate *e = bpf_map_lookup_elem(&event_rates, &number);

	if (!e)
		return 0;
	count_event(value);
	e->in_window++;
	if (now_ns - e->window_ns >= WINDOW_NS)
		begin_event_window(e, now_ns, budget);
	u32 weight = take_by_chance((u64)e->weight * EF_WEIGHT_ONE);
	if (!weight)
		return 0;
	add_to_total(EF_EVENT_TOTAL_SAMPLES, 1);
	/* more than the window before let expect */
	if (++e->taken > budget && e->weight < 1U << 15)
		e->weight += e->weight / 16 + 1;
	return weight;
}

#endif
