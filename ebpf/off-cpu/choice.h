/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Of which waits the stack is taken. It costs 10 to 25 us, and a busy machine has 100,000 switches a second, so most
 * are left out, by chance; one that is taken stands for 1/p of its kind: its time counts 1/p times. Whatever p is, as
 * long as it is chosen before the wait has begun, the sum of what is counted is right in the mean.
 *
 * p is how long such waits of the thread usually take, divided by a scale, at most 1: whoever waits long is always
 * taken, and what waits a thousand times a second for microseconds is seldom. Each CPU has a scale of its own, which
 * goes up at once with each stack above the budget, and comes down while there are fewer.
 *
 * Who usually waits for microseconds may wait for a minute once, and if that one stood for thousands it would be an hour. So
 * half of the budget goes to all waits alike: while there is room in it, p is no less than that share of what the CPU had of
 * late.
 */
#ifndef EF_WAIT_CHOICE_H
#define EF_WAIT_CHOICE_H

#include "records.h"
#include "../weights.h"

/* Of a thread's first wait of a kind. */
#define FIRST_GUESS_NS 50000000U
#define FIRST_SCALE_NS 1000000ULL
/* A scale is a whole number of such steps, so that p is what it was compared with. */
#define SCALE_BITS 10
#define MIN_SCALE_NS (1ULL << SCALE_BITS)
#define MAX_SCALE_NS (1ULL << 38)

/* Such waits are taken for longer than they are: a weight has 16 bits before the point. */
#define MIN_USUAL_SHIFT (15 - SCALE_BITS)

/* Of each CPU. */
struct ef_wait_rate {
	u64 window_ns; /* when the present window began */
	u64 scale_ns;
	u32 taken;   /* in the window */
	u32 seen;    /* to choose from */
	u32 least;   /* p, with 16 bits behind the point: no wait has less */
	u32 skipped; /* frames of BPF before the scheduler's */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ef_wait_rate);
} wait_rate SEC(".maps");

/* A window without a stack halves the scale, one with the whole budget leaves it. */
static __always_inline void begin_window(struct ef_wait_rate *r, u64 now_ns)
{
	u64 windows = (now_ns - r->window_ns) / WINDOW_NS;
	u64 budget = config.wait_budget / WINDOWS_A_SECOND ?: 1;
	u64 taken = windows > 1 ? 0 : r->taken;

	if (!r->scale_ns)
		r->scale_ns = FIRST_SCALE_NS;
	else if (windows > 20)
		r->scale_ns = MIN_SCALE_NS;
	else if (taken < budget)
		r->scale_ns = r->scale_ns / 2 + r->scale_ns / 2 * taken / budget;
	if (r->scale_ns < MIN_SCALE_NS)
		r->scale_ns = MIN_SCALE_NS;
	r->least = windows > 1 ? 0 : r->seen <= budget / 2 ? 1 << 16 : (budget << 15) / r->seen;
	r->window_ns = now_ns;
	r->taken = 0;
	r->seen = 0;
}

static __always_inline void note_taken(struct ef_wait_rate *r)
{
	u32 budget = config.wait_budget / WINDOWS_A_SECOND ?: 1;

	r->taken++;
	if (r->taken > budget && r->scale_ns < MAX_SCALE_NS)
		r->scale_ns += r->scale_ns / 8;
}

/* With p = usual / scale. Most are not taken: for those nothing is divided. */
static __always_inline u32 take_by_usual(struct ef_wait_rate *r, u64 usual_ns, u64 now_ns, bool is_unknown)
{
	if (now_ns - r->window_ns >= WINDOW_NS)
		begin_window(r, now_ns);
	r->seen++;
	u64 least_ns = (r->scale_ns * r->least) >> 16;
	if (usual_ns < least_ns && r->taken < config.wait_budget / WINDOWS_A_SECOND)
		usual_ns = least_ns;
	u64 scale = r->scale_ns >> SCALE_BITS;

	if (usual_ns >= scale << SCALE_BITS)
		return survive_shedding(EF_WEIGHT_ONE);
	if (is_unknown && r->taken < config.wait_budget * 2 / WINDOWS_A_SECOND)
		return survive_shedding(EF_WEIGHT_ONE);
	if (usual_ns < scale >> MIN_USUAL_SHIFT)
		usual_ns = scale >> MIN_USUAL_SHIFT;
	if (bpf_get_prandom_u32() * scale >> (32 - SCALE_BITS) >= usual_ns)
		return 0;
	return survive_shedding((scale << (SCALE_BITS + 16)) / usual_ns);
}

/* How many waits the one that begins stands for, with 16 bits behind the point, 0: it is left out. `is_unknown`: nobody was
 * told of its process, so that it is taken, unless that is more than twice the budget. */
static __always_inline u32 choose_wait(u32 usual_ns, u64 now_ns, bool is_unknown)
{
	u32 zero = 0;
	struct ef_wait_rate *r = bpf_map_lookup_elem(&wait_rate, &zero);

	if (!r)
		return 0;
	u32 weight = config.wait_weight ? take_by_chance(config.wait_weight) :
					  take_by_usual(r, usual_ns ?: FIRST_GUESS_NS, now_ns, is_unknown);
	if (weight)
		note_taken(r);
	return weight;
}

/* What a thread is expected to do next: a long wait is remembered for some time, as it decides what the next one may
 * cost the estimate. */
static __always_inline void learn_usual(u32 *usual_ns, u64 ns)
{
	u64 usual = *usual_ns;

	usual = ns >= usual ? ns : usual - (usual - ns) / 8;
	*usual_ns = usual > MAX_U32 ? MAX_U32 : usual ?: 1;
}

#endif
