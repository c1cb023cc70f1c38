/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What user space has already: sets of hashes, of traces and of functions; and how a function goes out. */
#ifndef EF_SENT_H
#define EF_SENT_H

#include "memory.h"

static __always_inline struct ef_seen_set *set_of_trace(u64 hash)
{
	u32 index = hash & (EF_SEEN_SETS - 1);
	return bpf_map_lookup_elem(&seen, &index);
}

static __always_inline struct ef_seen_set *set_of_function(u64 hash)
{
	u32 index = hash & (EF_FUNCTION_SETS - 1);
	return bpf_map_lookup_elem(&functions, &index);
}

static __always_inline bool is_seen(const struct ef_seen_set *set, u64 hash)
{
#pragma unroll
	for (int i = 0; i < EF_SEEN_WAYS; i++)
		if (set->hashes[i] == hash)
			return 1;
	return 0;
}

/* In place of nothing, or of any other. */
static __always_inline void mark_seen(struct ef_seen_set *set, u64 hash)
{
	u32 way = (hash >> 32) & (EF_SEEN_WAYS - 1);

#pragma unroll
	for (int i = 0; i < EF_SEEN_WAYS; i++)
		if (!set->hashes[i])
			way = i;
	set->hashes[way & (EF_SEEN_WAYS - 1)] = hash;
}

/* A word of the trace that is being made. */
static __always_inline u64 trace_word(const struct ef_scratch *s, u64 at)
{
	OPAQUE(at);
	return at < EF_MAX_WORDS ? s->trace.frames[at] : 0;
}

/* s->record.function; its texts are in place. */
static __always_inline bool send_function(struct ef_scratch *s)
{
	u64 bytes = s->record.function.text_bytes;

	OPAQUE(bytes);
	if (bytes > EF_FUNCTION_TEXT_BYTES)
		return 0;
	if (bpf_ringbuf_output(&records, &s->record.function, offsetof(struct ef_function, texts) + bytes,
			       BPF_RB_NO_WAKEUP)) {
		count(EF_COUNTER_functions_lost_ring);
		return 0;
	}
	count(EF_COUNTER_functions_sent);
	return 1;
}

#endif
