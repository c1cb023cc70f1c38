/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Maps and counters of all programs. */
#ifndef EF_MAPS_H
#define EF_MAPS_H

#include "kernel.h"
#include "counters.h"

struct ef_block {
	u8 bytes[EF_BLOCK_BYTES];
};

struct ef_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(key_size, 4);
	__uint(value_size, EF_BLOCK_BYTES);
};

/* Sizes that depend on the machine or on flags are set before load: see agent/tracer/bpf-object.ts. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, 0);
	__type(key, u64);
	__type(value, struct ef_file_entry);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct ef_code_key);
	__type(value, struct ef_code);
} process_code SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 8192);
	__type(key, u32);
	__array(values, struct ef_table);
} tables SEC(".maps");

/*
 * What was sent already. Both are asked for each sample, with caches that other work has filled since the last one, so
 * each is an array of sets of one cache line, found by the lower bits of what is looked for: a hash table of the
 * kernel's waits for memory five times. BPF_F_MMAPABLE, for nothing but that: it aligns elements with cache lines.
 *
 * A way is written with plain stores. Whatever a race makes of it, a trace or a process is sent again, never taken
 * for known: a torn entry is nobody's. docs/decisions/bpf/known-traces.md
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EF_SEEN_SETS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct ef_seen_set);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EF_PROCESS_SETS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct ef_process_set);
} processes SEC(".maps");

/* Functions whose names were sent ahead of a trace; made with the first runtime. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EF_FUNCTION_SETS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct ef_seen_set);
} functions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct ef_process_id);
	__type(value, struct ef_process_runtimes);
} process_runtimes SEC(".maps");

/* The sampler is replaced by one with more runtimes when a runtime is first detected; see enum ef_sampler_slot. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, EF_SAMPLER_SLOT_MAX);
	__uint(key_size, 4);
	__uint(value_size, 4);
} samplers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u32);
} targets SEC(".maps");

/* Of 2^32 samples so many are left out: user space sets it while it has more to do than it may. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} shed_share SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EF_COUNTER_MAX);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

static __always_inline void count_by(enum ef_counter counter, u64 n)
{
	u32 key = counter;
	u64 *value = bpf_map_lookup_elem(&counters, &key);
	/* one instruction: a tick may come between two */
	if (value)
		__sync_fetch_and_add(value, n);
}

static __always_inline void count(enum ef_counter counter)
{
	count_by(counter, 1);
}

#endif
