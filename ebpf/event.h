/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What all sources of --event have: totals of each event, and a program that is attached, which counts and chooses, and jumps to
 * one that takes the stack. A program that jumps must not have functions that are verified apart: kernels for arm64 before 6.0
 * refuse it.
 */
#ifndef EF_EVENT_H
#define EF_EVENT_H

#include "source.h"

/* The programs that take the stack; replaced as the sampler is. */
#define TAKERS(name) \
	struct { \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY); \
		__uint(max_entries, 1); \
		__uint(key_size, 4); \
		__uint(value_size, 4); \
	} name SEC(".maps")

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EF_MAX_EVENTS *EF_EVENT_TOTAL_MAX);
	__type(key, u32);
	__type(value, u64);
} event_totals SEC(".maps");

static __always_inline void add_to_total(enum ef_event_total total, u64 n)
{
	u32 key = config.event.number * EF_EVENT_TOTAL_MAX + total;
	u64 *value = bpf_map_lookup_elem(&event_totals, &key);

	if (value)
		__sync_fetch_and_add(value, n);
}

/* Beyond it what a sample stands for would not fit; so would a number below 0. */
#define VALUE_END (1ULL << 47)

static __always_inline bool is_valid_value(u64 value)
{
	if (value < VALUE_END)
		return 1;
	count(EF_COUNTER_events_value_failed);
	return 0;
}

static __always_inline void count_event(u64 value)
{
	add_to_total(EF_EVENT_TOTAL_EVENTS, 1);
	add_to_total(EF_EVENT_TOTAL_VALUES, value);
}

/* True where the running thread is not the idle task, and of a chosen process. */
static __always_inline bool is_of_interest(void)
{
	u64 pid_tgid = bpf_get_current_pid_tgid();

	return (pid_tgid || config.send_idle) && is_chosen(pid_tgid >> 32);
}

/* Begins a sample; the program that is jumped to finishes it. */
static __always_inline bool begin_event_sample(u32 origin, u64 value)
{
	if (!begin_unknown_sample(origin, value))
		return 0;
	count(EF_COUNTER_samples);
	count(EF_COUNTER_events_sampled);
	return 1;
}

/* The sample that was begun by the program that jumped here. */
static __always_inline struct ef_scratch *go_on_with_sample(void)
{
	struct ef_scratch *s = get_scratch();

	if (s)
		introduce_process(s);
	return s;
}

/* There was no program to jump to. */
static __always_inline int give_event_up(void)
{
	struct ef_scratch *s = get_scratch();

	if (s)
		release_scratch(s);
	count(EF_COUNTER_sampler_missing);
	return 0;
}

#endif
