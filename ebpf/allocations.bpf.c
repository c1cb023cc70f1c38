/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * --event malloc: what programs allocate, and what of it they have not freed, by probes at the functions of their allocators. The
 * stack is taken at the entry, as long as all return addresses stand on it. What the allocator returns is known when it returns:
 * from then on until it is freed a sampled allocation is in the map of live ones, which user space reads.
 *
 * An allocator may call itself by another of its names: what is within an allocation belongs to it.
 */
#include "event.h"
#include "value-choice.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

TAKERS(alloc_takers);

/* The allocation that a thread is in. */
struct ef_allocation {
	u64 sp; /* at the entry */
	u64 since_ns;
	u64 result_at;           /* where the address goes; 0: it is returned */
	struct ef_sample sample; /* of live bytes; trace_hash 0: there is none */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct ef_allocation);
} allocations SEC(".maps");

struct ef_live_key {
	u64 address;
	u64 tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EF_MAX_LIVE_ALLOCATIONS);
	__type(key, struct ef_live_key);
	__type(value, struct ef_sample);
} live_heap SEC(".maps");

/* Longer than any allocator takes: whoever was there never returned. */
#define STALE_NS 1000000000ULL

static __always_inline u32 current_tid(void)
{
	return (u32)bpf_get_current_pid_tgid();
}

static __always_inline struct ef_live_key live_key(u64 address)
{
	return (struct ef_live_key){ .address = address, .tgid = bpf_get_current_pid_tgid() >> 32 };
}

static __always_inline void forget(u64 address)
{
	struct ef_live_key key = live_key(address);

	bpf_map_delete_elem(&live_heap, &key);
}

static __always_inline void remember(u64 address, const struct ef_sample *sample)
{
	struct ef_live_key key = live_key(address);

	if (bpf_map_update_elem(&live_heap, &key, sample, BPF_ANY))
		count(EF_COUNTER_allocations_full);
}

static __always_inline bool is_within_allocation(u32 tid, u64 sp, u64 now_ns)
{
	const struct ef_allocation *a = bpf_map_lookup_elem(&allocations, &tid);

	/* equal: it was jumped to, as malloc() is by realloc() */
	return a && sp <= a->sp && now_ns - a->since_ns < STALE_NS;
}

static __always_inline bool begin_allocation(const struct ef_user_regs *ctx, u64 bytes, u64 result_at)
{
	struct ef_allocation a = { .sp = USER_SP(ctx), .since_ns = bpf_ktime_get_ns(), .result_at = result_at };
	u32 tid = current_tid();

	if (!is_of_interest() || is_within_allocation(tid, a.sp, a.since_ns))
		return 0;
	bpf_map_update_elem(&allocations, &tid, &a, BPF_ANY);
	u32 weight = choose_by_value(bytes, a.since_ns);

	return weight && begin_event_sample(EF_ORIGIN_ALLOCATED, weigh(bytes, weight));
}

#define ALLOCATION(name, bytes, result_at) \
	SEC("kprobe") \
	int name(struct ef_user_regs *ctx) \
	{ \
		if (!begin_allocation(ctx, bytes, result_at)) \
			return 0; \
		bpf_tail_call(ctx, &alloc_takers, 0); \
		return give_event_up(); \
	}

ALLOCATION(on_malloc, USER_ARGUMENT_0(ctx), 0)
ALLOCATION(on_calloc, USER_ARGUMENT_0(ctx) * USER_ARGUMENT_1(ctx), 0)
ALLOCATION(on_memalign, USER_ARGUMENT_1(ctx), 0)
ALLOCATION(on_posix_memalign, USER_ARGUMENT_2(ctx), USER_ARGUMENT_0(ctx))
/* As the others, with the allocator's own context in front. */
ALLOCATION(on_context_calloc, USER_ARGUMENT_1(ctx) * USER_ARGUMENT_2(ctx), 0)

/* Go's: what it has frees nothing by name, and its stacks move, so that no return is probed. */
SEC("kprobe")
int on_mallocgc(struct ef_user_regs *ctx)
{
	u64 bytes = GO_ARGUMENT_0(ctx);
	u32 weight = is_of_interest() ? choose_by_value(bytes, bpf_ktime_get_ns()) : 0;

	if (!weight || !begin_event_sample(EF_ORIGIN_ALLOCATED, weigh(bytes, weight)))
		return 0;
	bpf_tail_call(ctx, &alloc_takers, 0);
	return give_event_up();
}

#define FREEING(name, address) \
	SEC("kprobe") \
	int name(struct ef_user_regs *ctx) \
	{ \
		forget(address); \
		return 0; \
	}

FREEING(on_free, USER_ARGUMENT_0(ctx))
FREEING(on_context_free, USER_ARGUMENT_1(ctx))

/* What was there is gone, even where there is no room for more: then the program keeps it, and live bytes miss it. */
#define REALLOCATION(name, address, bytes) \
	SEC("kprobe") \
	int name(struct ef_user_regs *ctx) \
	{ \
		forget(address); \
		if (!begin_allocation(ctx, bytes, 0)) \
			return 0; \
		bpf_tail_call(ctx, &alloc_takers, 0); \
		return give_event_up(); \
	}

REALLOCATION(on_realloc, USER_ARGUMENT_0(ctx), USER_ARGUMENT_1(ctx))
REALLOCATION(on_context_realloc, USER_ARGUMENT_1(ctx), USER_ARGUMENT_2(ctx))

SEC("kprobe")
int take_allocation(struct ef_user_regs *ctx)
{
	struct ef_scratch *s = go_on_with_sample();
	u32 tid = current_tid();

	if (!s)
		return 0;
	take_stacks(ctx, s, ctx);
	end_user_stack(s, in_kernel(s));
	struct ef_allocation *a = bpf_map_lookup_elem(&allocations, &tid);
	if (send_sample(s) && a) {
		a->sample = s->sample;
		a->sample.origin = EF_ORIGIN_LIVE;
	}
	release_scratch(s);
	return 0;
}

SEC("kprobe")
int on_allocated(struct ef_user_regs *ctx)
{
	u32 tid = current_tid();
	struct ef_allocation *a = bpf_map_lookup_elem(&allocations, &tid);
	u64 address = USER_RESULT(ctx);

	/* an outer one comes later */
	if (!a || a->sp != SP_AT_ENTRY(USER_SP(ctx)))
		return 0;
	if (a->result_at && (address || bpf_probe_read_user(&address, sizeof(address), (void *)a->result_at)))
		address = 0;
	if (address && a->sample.trace_hash)
		remember(address, &a->sample);
	bpf_map_delete_elem(&allocations, &tid);
	return 0;
}
