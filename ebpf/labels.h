/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the sampled program itself says of what it does: labels, which go behind the sample. They are read at the sample,
 * texts and all, since they are the thread's for that moment only. Each is a struct ef_label and its texts.
 */
#ifndef EF_LABELS_H
#define EF_LABELS_H

#include "memory.h"
#include "user-memory.h"

#define LABEL_ALIGNMENT 4
#define LABEL_READ(s, dst, size, address) \
	({ \
		long error_ = read_or_count((dst), (size), (address), EF_COUNTER_labels_read_failed); \
		if (error_) \
			note_unread((s), (address)); \
		error_; \
	})

/* One whose value is a text of the process; so is its key, which labels of the kind EF_LABEL_TEXT alone have. Global, so that it is
 * verified once. */
__noinline int add_label(u32 kind, u64 key, u64 key_bytes, u64 value, u64 value_bytes)
{
	struct ef_scratch *s = config.runtimes ? get_scratch() : NULL;
	if (!s)
		return 0;
	u64 at = s->sample.label_bytes;
	u64 kept = value_bytes < EF_LABEL_VALUE_BYTES ? value_bytes : EF_LABEL_VALUE_BYTES;

	OPAQUE(kept);
	OPAQUE(key_bytes);
	OPAQUE(at);
	if ((kind == EF_LABEL_TEXT && !key_bytes) || key_bytes > EF_LABEL_KEY_BYTES ||
	    kept > EF_LABEL_VALUE_BYTES || at > EF_LABELS_BYTES ||
	    at + sizeof(struct ef_label) + key_bytes + kept > EF_LABELS_BYTES) {
		count(EF_COUNTER_labels_left_out);
		return 0;
	}
	struct ef_label *label = (void *)&s->labels[at & ~(u64)(LABEL_ALIGNMENT - 1)];
	u8 *texts = (u8 *)(label + 1);
	if ((key_bytes && LABEL_READ(s, texts, key_bytes, key)) ||
	    (kept && LABEL_READ(s, texts + key_bytes, kept, value)))
		return 0;
	if (kept < value_bytes)
		count(EF_COUNTER_labels_cut);
	label->kind = kind;
	label->key_bytes = key_bytes;
	label->value_bytes = kept;
	label->is_cut = kept < value_bytes;
	s->sample.label_bytes =
		(at + sizeof(*label) + key_bytes + kept + LABEL_ALIGNMENT - 1) & ~(u64)(LABEL_ALIGNMENT - 1);
	return 0;
}

/* One whose value is a number. */
static __always_inline void add_number_label(struct ef_scratch *s, enum ef_label_kind kind, u64 number)
{
	struct ef_label *label = (void *)s->labels;

	label->kind = kind;
	label->key_bytes = 0;
	label->value_bytes = sizeof(number);
	label->is_cut = 0;
	__builtin_memcpy(label + 1, &number, sizeof(number));
	s->sample.label_bytes = sizeof(*label) + sizeof(number);
}

#endif
