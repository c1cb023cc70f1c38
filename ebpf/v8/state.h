/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the V8 unwinder keeps for the length of a sample. */
#ifndef EF_V8_STATE_H
#define EF_V8_STATE_H

#include "../kernel.h"
#include "records.h"

/* What is known of the sampled process and frame. */
struct ef_v8_state {
	u64 slots[6]; /* from fp - 40: bytecode offset, bytecode array, argument count, function, context, fp */
	u64 shared[8];
	u64 code[2];
};

#endif
