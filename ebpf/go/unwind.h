/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Labels of Go's goroutines (runtime/pprof: Do, SetGoroutineLabels). Go's frames are native ones: asked at each, this
 * only notes that there is one, and in which file. Behind the stack it goes from the thread to the goroutine that runs:
 *
 *   thread -> g (the goroutine, or one of the scheduler's or for signals) -> m (what Go knows of the thread) -> curg
 *
 * That one is none between two goroutines and while Go waits for work; it stays the same while the scheduler or C works
 * for it. Its labels are
 *
 *   since Go 1.24   a slice of pairs of texts
 *   before          a map: buckets of eight, with further ones behind them; those of an array half its size that
 *                   were not moved yet, while it grows
 *
 * Both are made before they are set and never changed. Facts: runtime/{runtime2,proflabel,map}.go, runtime/pprof/label.go.
 */
#ifndef EF_GO_H
#define EF_GO_H

#include "../labels.h"
#include "../thread-local.h"

/* runtime2.go: members of g and m that never moved */
#define GO_G_M 48
#define GO_M_G0 0
/* m.gsignal is 112 bytes before m.curg, in all releases */
#define GO_SIGNAL_BEFORE_CURG 112
#define GO_MAX_LABELS 64
/* Buckets of a map, the empty ones too */
#define GO_MAX_BUCKETS 64
#define GO_MAX_BUCKET_BITS 16
/* map.go: minTopHash; what is below says that a slot is empty or was moved */
#define GO_MIN_TOPHASH 5
#define GO_SAME_SIZE_GROW 8

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct ef_go);
} go_files SEC(".maps");

#define GO_WORD(address) user_word((address), EF_COUNTER_go_read_failed)

/* Notes the file of the first frame that is Go's. */
static __always_inline int unwind_go(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(GO);

	if (!s || !begins_in_sample(s, EF_RUNTIME_GO))
		return 0;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	s->runtimes.go.key = m->key;
	s->runtimes.go.delta = m->delta;
	return 0;
}

/* What the thread runs, 0: nothing of Go's. */
static __always_inline u64 go_thread_g(const struct ef_scratch *s, const struct ef_go *go)
{
	if (go->access == EF_GO_REGISTER)
		return s->state.leaf.by_dwarf_number[REG_GO_GOROUTINE];
	u64 offset = go->access == EF_GO_SLOT ? GO_WORD(go->g - s->runtimes.go.delta) : (u64)go->g;
	return GO_WORD(thread_pointer() + offset);
}

/* The goroutine that the thread works for, 0: none. */
static __always_inline u64 go_current(const struct ef_scratch *s, const struct ef_go *go)
{
	u64 g = go_thread_g(s, go);
	u64 m = g ? GO_WORD(g + GO_G_M) : 0;
	u64 current = m ? GO_WORD(m + go->curg) : 0;

	if (!current || current == g)
		return current;
	/* then it is one of the two that the thread has for the scheduler and for signals */
	if (GO_WORD(m + GO_M_G0) == g || GO_WORD(m + go->curg - GO_SIGNAL_BEFORE_CURG) == g)
		return current;
	count(EF_COUNTER_go_bad_goroutine);
	return 0;
}

static __always_inline void take_go_slice(struct ef_scratch *s, u64 slice)
{
	struct ef_go_state *w = &s->runtimes.go;
	u64 pair = 0, left = 0;

	if (LABEL_READ(s, w->words, 16, slice))
		return;
	pair = w->words[0];
	left = w->words[1];
	for (u32 i = 0; i < GO_MAX_LABELS; i++, pair += sizeof(w->words)) {
		if (i >= left || LABEL_READ(s, w->words, sizeof(w->words), pair))
			return;
		add_label(EF_LABEL_TEXT, w->words[0], w->words[1], w->words[2], w->words[3]);
	}
	if (left > GO_MAX_LABELS)
		count(EF_COUNTER_labels_left_out);
}

/* The next bucket of those that are left; not 0 at the end. Global, so that it is verified once. */
__noinline int take_go_bucket(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(GO);
	if (!s)
		return 1;
	struct ef_go_state *w = &s->runtimes.go;
	struct go_bucket *b = &w->slots;

	if (!w->bucket) {
		if (!w->left)
			return 1;
		w->left--;
		w->bucket = w->next_in_array;
		w->next_in_array += sizeof(*b);
	}
	if (LABEL_READ(s, b, sizeof(*b), w->bucket))
		return 1;
	w->bucket = b->overflow;
	for (u32 i = 0; i < GO_BUCKET_SLOTS; i++)
		if (b->tophash[i] >= GO_MIN_TOPHASH)
			add_label(EF_LABEL_TEXT, b->keys[i * 2], b->keys[i * 2 + 1], b->values[i * 2],
				  b->values[i * 2 + 1]);
	return 0;
}

/* `array` has 2^bits buckets. */
static __always_inline void take_go_buckets(struct ef_go_state *w, u64 array, u32 bits)
{
	w->bucket = 0;
	w->next_in_array = array;
	w->left = 1ULL << bits;
	for (u32 i = 0; i < GO_MAX_BUCKETS; i++)
		if (take_go_bucket())
			return;
	if (w->bucket || w->left)
		count(EF_COUNTER_labels_left_out);
}

static __always_inline void take_go_map(struct ef_scratch *s, u64 map)
{
	struct ef_go_state *w = &s->runtimes.go;

	if (!map || LABEL_READ(s, &w->map, sizeof(w->map), map) || !w->map.count)
		return;
	if (w->map.bucket_bits > GO_MAX_BUCKET_BITS) {
		count(EF_COUNTER_go_bad_labels);
		return;
	}
	u32 bits = w->map.bucket_bits;
	take_go_buckets(w, w->map.buckets, bits);
	if (w->map.old_buckets)
		take_go_buckets(w, w->map.old_buckets,
				w->map.flags & GO_SAME_SIZE_GROW || !bits ? bits : bits - 1);
}

/* Of the goroutine that runs. Global, so that it is verified once. */
__noinline int take_go_labels(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(GO);
	if (!s)
		return 0;
	u64 key = s->runtimes.go.key;
	struct ef_go *go = bpf_map_lookup_elem(&go_files, &key);
	if (!go || !(go->labels || config.goroutine_ids))
		return 0;
	u64 current = go_current(s, go);
	if (!current)
		return 0;
	if (config.goroutine_ids)
		add_number_label(s, EF_LABEL_GOROUTINE, GO_WORD(current + go->goid));
	u64 labels = go->labels ? GO_WORD(current + go->labels) : 0;
	if (!labels)
		return 0;
	if (go->is_map)
		take_go_map(s, GO_WORD(labels));
	else
		take_go_slice(s, labels);
	return 0;
}

#endif
