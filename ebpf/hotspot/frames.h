/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* How much of its frame the leaf has, where that is HotSpot's machine code: the instructions around its program counter
 * tell. See unwind.h. */
#ifndef EF_HOTSPOT_FRAMES_H
#define EF_HOTSPOT_FRAMES_H

#include "blobs.h"

/* What calls of C push below their frame for a moment, bytes */
#define HOTSPOT_NATIVE_PUSHES 64

/* Where the caller's state is, seen from a frame that is not in the interpreter. */
enum hotspot_frame {
	FRAME_COMPLETE,  /* at the end of the frame, fp below the return address */
	FRAME_ALLOCATED, /* the same, but fp has not been saved yet */
	FRAME_PUSHED,    /* [sp] is the caller's fp, the return address follows */
	FRAME_NONE,      /* [sp] is the return address; on arm64 it is in its register, as with FRAME_ALLOCATED */
	FRAME_POINTER,   /* the usual pair at fp */
};

/* Where the code of a blob gets its frame, 0: nowhere, or it is not known. */
static __always_inline u64 complete_at(const struct ef_hotspot_state *w)
{
	s64 offset = w->jvm.has_short_complete ? (__s16)BLOB_SHORT(w, w->jvm.frame_complete) :
						 (__s32)BLOB_INT(w, w->jvm.frame_complete);
	return offset > 0 ? w->code_begin + offset : 0;
}

/* Native methods and what has a frame pointer of its own keep it in their frame. */
static __always_inline bool has_own_fp(const struct ef_scratch *s, const struct ef_hotspot_state *w)
{
	return s->state.fp - s->state.sp < w->frame_bytes + HOTSPOT_NATIVE_PUSHES;
}

#endif
