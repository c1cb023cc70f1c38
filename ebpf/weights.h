/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Samples that stand for others: of n events one is taken by chance, and its value counts n times; n is its weight. The sum
 * is right in the mean for any n that is chosen before the event. A weight has 16 bits behind the point: EF_WEIGHT_ONE is 1.
 */
#ifndef EF_WEIGHTS_H
#define EF_WEIGHTS_H

#include "maps.h"

#define WINDOW_NS 100000000ULL
#define WINDOWS_A_SECOND 10
#define MAX_U32 0xffffffffULL

/* While the agent has more to do than it may, it takes a part of what was chosen, with a higher weight. Returns that weight, 0:
 * it is left out. */
static __always_inline u32 survive_shedding(u32 weight)
{
	u32 zero = 0;
	u32 *share = bpf_map_lookup_elem(&shed_share, &zero);

	if (!share || !*share)
		return weight;
	u64 heavier = ((u64)weight << 16) / (((MAX_U32 - *share) >> 16) + 1);
	if (heavier > MAX_U32)
		heavier = MAX_U32;
	return bpf_get_prandom_u32() < ((u64)weight << 32) / heavier ? heavier : 0;
}

/* Takes one of `weight` events. Returns the weight of the present one, 0: it is left out. */
static __always_inline u32 take_by_chance(u64 weight)
{
	if (weight > MAX_U32)
		weight = MAX_U32;
	if (weight <= EF_WEIGHT_ONE)
		return survive_shedding(EF_WEIGHT_ONE);
	return bpf_get_prandom_u32() < (1ULL << 48) / weight ? survive_shedding(weight) : 0;
}

/* Right for any value below 2^48; a part of 1 is rounded by chance, so that the sum stays right. */
static __always_inline u64 weigh(u64 value, u32 weight)
{
	u64 behind_point = (value & 0xffff) * weight + (bpf_get_prandom_u32() & 0xffff);

	return (value >> 16) * weight + (behind_point >> 16);
}

#endif
