/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What an OpenTelemetry SDK says of the work of a thread: trace, span and attributes, as OTEP 4947 has it. The thread has a
 * variable that leads to a record, which goes behind the sample as a label. In Node, where one thread serves all requests,
 * V8 keeps what is served now:
 *
 *   variable -> slot of V8 -> AsyncContextFrame (a JSMap) -> value under the SDK's AsyncLocalStorage -> wrapper -> record
 *
 * User space has found the variable (agent/thread-contexts). No process is asked that has not said that it has one.
 */
#ifndef EF_THREAD_CONTEXT_READ_H
#define EF_THREAD_CONTEXT_READ_H

#include "../labels.h"
#include "../thread-local.h"
#include "records.h"

#define HAS_THREAD_CONTEXTS (config.runtimes & 1U << EF_PART_THREAD_CONTEXTS)
#define THREAD_CONTEXT_SCRATCH() (HAS_THREAD_CONTEXTS ? get_scratch() : NULL)

/* Of one bucket of a JSMap that are looked at: a frame has an entry for each AsyncLocalStorage of the program */
#define NODE_MAX_ENTRIES 32
#define NODE_MAX_BUCKETS (1U << 20)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct ef_process_id);
	__type(value, struct ef_thread_context);
} thread_contexts SEC(".maps");

#define CONTEXT_WORD(address) user_word((address), EF_COUNTER_contexts_read_failed)
#define CONTEXT_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_contexts_read_failed)

/* V8: an integer stands in the upper half of a word whose lower half is 0; a pointer is one more than the address. */
static __always_inline bool is_small_integer(u64 word)
{
	return !(u32)word;
}

/* The value in the frame under the SDK's key, 0: there is none. Global, so that it is verified once. */
__noinline u64 find_in_node_frame(u64 counts)
{
	struct ef_scratch *s = THREAD_CONTEXT_SCRATCH();
	if (!s)
		return 0;
	struct ef_thread_context_state *w = &s->thread_context;

	if (CONTEXT_READ(w->counts, sizeof(w->counts), counts))
		return 0;
	u64 buckets = w->counts[2] >> 32;
	if (!is_small_integer(w->counts[0]) || !is_small_integer(w->counts[2]) || !buckets ||
	    buckets > NODE_MAX_BUCKETS || buckets & (buckets - 1)) {
		count(EF_COUNTER_contexts_bad);
		return 0;
	}
	u64 heads = counts + sizeof(w->counts);
	u64 entries = heads + buckets * 8;
	u64 key = CONTEXT_WORD(w->node.key);
	u64 index = CONTEXT_WORD(heads + (w->node.key_hash & (buckets - 1)) * 8);

	for (u32 i = 0; key && i < NODE_MAX_ENTRIES; i++) {
		/* what ends a chain is a negative number */
		if (!is_small_integer(index) || index >> 32 >= NODE_MAX_BUCKETS * 2 ||
		    CONTEXT_READ(w->entry, sizeof(w->entry), entries + (index >> 32) * sizeof(w->entry)))
			return 0;
		if (w->entry[0] == key)
			return w->entry[1];
		index = w->entry[2];
	}
	return 0;
}

/* Address of the record of what Node serves now, 0: it serves nothing that has one. Global, so that it is verified once. */
__noinline u64 find_node_record(u64 variable)
{
	struct ef_scratch *s = THREAD_CONTEXT_SCRATCH();
	if (!s)
		return 0;
	struct ef_thread_context_state *w = &s->thread_context;
	struct ef_thread_context *c = &w->found;

	if (CONTEXT_READ(&w->node, sizeof(w->node), variable) || !w->node.slot)
		return 0;
	u64 frame = CONTEXT_WORD(w->node.slot);
	if (!(frame & 1) || frame == w->node.undefined)
		return 0;
	u64 table = CONTEXT_WORD(frame - 1 + c->table);
	if (!(table & 1))
		return 0;
	u64 wrapper = find_in_node_frame(table - 1 + c->counts);
	if (!(wrapper & 1) || wrapper == w->node.undefined)
		return 0;
	u64 wrapped = CONTEXT_WORD(wrapper - 1 + c->wrapped);
	if (!wrapped && c->wrapped_else)
		wrapped = CONTEXT_WORD(wrapper - 1 + c->wrapped_else);
	return wrapped && c->is_indirect ? CONTEXT_WORD(wrapped + c->record) : wrapped;
}

static __always_inline u64 find_thread_record(struct ef_thread_context *c)
{
	u64 tp = thread_pointer(), block = tp;

	if (c->module) {
		if (!has_module(tp, c->module, c->is_musl, EF_COUNTER_contexts_read_failed))
			return 0;
		block = thread_local_block(tp, c->module, c->is_musl, EF_COUNTER_contexts_read_failed);
	}
	if (!block)
		return 0;
	u64 variable = block + c->offset;
	return c->kind == EF_THREAD_CONTEXT_NODE ? find_node_record(variable) : CONTEXT_WORD(variable);
}

/* Behind what labels there are. Global, so that it is verified once. */
__noinline int take_thread_context(void)
{
	struct ef_scratch *s = THREAD_CONTEXT_SCRATCH();
	if (!s)
		return 0;
	struct ef_thread_context *known = bpf_map_lookup_elem(&thread_contexts, &s->sample.process);
	if (!known)
		return 0;
	struct ef_thread_context_state *w = &s->thread_context;
	w->found = *known;
	u64 address = find_thread_record(&w->found);
	u64 at = s->sample.label_bytes;

	OPAQUE(at);
	if (!address)
		return 0;
	if (at > EF_LABELS_BYTES - sizeof(struct ef_label) - EF_CONTEXT_RECORD_BYTES) {
		count(EF_COUNTER_labels_left_out);
		return 0;
	}
	struct ef_label *label = (void *)&s->labels[at & ~(u64)(LABEL_ALIGNMENT - 1)];
	struct ef_thread_context_record *record = (void *)(label + 1);
	if (CONTEXT_READ(record, sizeof(*record), address) || record->is_valid != 1)
		return 0;
	u64 bytes = record->attribute_bytes;

	OPAQUE(bytes);
	if (bytes > EF_CONTEXT_ATTRIBUTE_BYTES) {
		/* more than any writer writes: it was none */
		count(EF_COUNTER_contexts_bad);
		return 0;
	}
	if (bytes && CONTEXT_READ(record + 1, bytes, address + sizeof(*record)))
		return 0;
	label->kind = EF_LABEL_THREAD_CONTEXT;
	label->is_cut = 0;
	label->key_bytes = 0;
	label->value_bytes = sizeof(*record) + bytes;
	s->sample.label_bytes = (at + sizeof(*label) + sizeof(*record) + bytes + LABEL_ALIGNMENT - 1) &
				~(u64)(LABEL_ALIGNMENT - 1);
	count(EF_COUNTER_contexts_taken);
	return 0;
}

#endif
