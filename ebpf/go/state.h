/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the reader of Go's labels keeps for the length of a sample. */
#ifndef EF_GO_STATE_H
#define EF_GO_STATE_H

#include "../kernel.h"
#include "records.h"

#define GO_BUCKET_SLOTS 8
#define GO_STRING_WORDS 2

/* A bucket of a map whose keys and values are strings; runtime/map.go (bmap). */
struct go_bucket {
	u8 tophash[GO_BUCKET_SLOTS];
	u64 keys[GO_BUCKET_SLOTS * GO_STRING_WORDS];
	u64 values[GO_BUCKET_SLOTS * GO_STRING_WORDS];
	u64 overflow;
};

/* runtime/map.go (hmap), as far as it is read */
struct go_map {
	u64 count;
	u8 flags;
	u8 bucket_bits;
	u16 overflows;
	u32 hash_seed;
	u64 buckets;
	u64 old_buckets;
};

struct ef_go_state {
	u64 key; /* of the first file with Go that was met; its mapping's delta */
	u64 delta;
	u64 words[4]; /* head of a slice, or a label */
	struct go_map map;
	u64 bucket; /* the next one; 0: none is left in this array */
	u64 left;   /* of the array behind it */
	u64 next_in_array;
	struct go_bucket slots;
};

#endif
