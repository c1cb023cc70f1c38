/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the HotSpot unwinder keeps for the length of a sample. */
#ifndef EF_HOTSPOT_STATE_H
#define EF_HOTSPOT_STATE_H

#include "../kernel.h"
#include "records.h"

/* What a mask of two's power keeps offsets in; less of it is filled */
#define HOTSPOT_HEAD_BYTES 512
_Static_assert(EF_HOTSPOT_BLOB_BYTES <= HOTSPOT_HEAD_BYTES, "the head that is read");
/* Words of an interpreted frame below fp that say what it is; the pair at fp follows */
#define INTERPRETED_WORDS HOTSPOT_INTERPRETED_WORDS

/* What is known of the sampled process and frame. */
struct ef_hotspot_state {
	u64 is_looked_up;
	struct ef_hotspot jvm;
	/* the frame's blob */
	u64 blob;
	u64 code_begin;
	u64 name; /* address */
	u32 kind; /* how the name begins, enum hotspot_name among others */
	u32 frame_bytes;
	u64 head[HOTSPOT_HEAD_BYTES / 8];
	u64 code[HOTSPOT_CODE_BYTES / 8];                  /* around pc */
	u32 saves, pushes, lowers, restores, ends, sender; /* what instructions do: see code-arm64.h */
	u64 slots[INTERPRETED_WORDS + 2];
	u64 pair[2];
	struct ef_hotspot nothing; /* never written */
};

#endif
