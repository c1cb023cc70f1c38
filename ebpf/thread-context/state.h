/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the reader of thread contexts keeps for the length of a sample. */
#ifndef EF_THREAD_CONTEXT_STATE_H
#define EF_THREAD_CONTEXT_STATE_H

#include "records.h"

/* What the variable of Node's writers holds: the same as long as the thread has its V8. */
struct node_context {
	u64 slot; /* address of what V8 keeps of what is served now; 0: nothing is to be read */
	u64 key;  /* address of a pointer to the SDK's AsyncLocalStorage */
	u32 key_hash;
	u32 reserved;
	u64 undefined; /* V8's value of that name */
};

struct ef_thread_context_state {
	struct ef_thread_context found;
	struct node_context node;
	u64 counts[3]; /* elements, deleted ones, buckets */
	u64 entry[3];  /* key, value, index of the next one of its bucket */
};

#endif
