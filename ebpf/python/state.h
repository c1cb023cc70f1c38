/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the CPython unwinder keeps for the length of a sample. */
#ifndef EF_PYTHON_STATE_H
#define EF_PYTHON_STATE_H

#include "../kernel.h"
#include "records.h"

/* States of one thread that are gone through, one an interpreter */
#define PYTHON_MAX_STATES 4

/* The Python frames of the sampled stack that were not taken yet. */
struct ef_python_state {
	u64 key;               /* the interpreter's file; 0: none was detected */
	struct ef_python file; /* its entry, copied once a sample */
	u64 has_begun;
	u64 frame;
	u64 cframe;
	u64 link;                      /* the extra frame that ended the last run */
	u64 base_frame;                /* where the thread state's list ends, if that is a frame */
	u64 states[PYTHON_MAX_STATES]; /* of this thread that were gone through */
	u32 state_count;
	u32 has_all_states; /* no more was found */
	u64 searched_thread;
	u64 searched_interpreter;
	u64 kept_frame; /* the list from here on was found to belong further out than kept_link */
	u64 kept_link;
	u8 bytes[256];
	u8 code[256];
};

#endif
