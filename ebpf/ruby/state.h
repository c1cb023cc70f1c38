/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the Ruby unwinder keeps for the length of a sample. */
#ifndef EF_RUBY_STATE_H
#define EF_RUBY_STATE_H

#include "../kernel.h"
#include "records.h"

/* Words of the stack in which code of the JIT has saved where it was called from */
#define RUBY_JIT_WORDS 8

/* The Ruby frames of the sampled stack that were not taken yet. */
struct ef_ruby_state {
	u64 key;             /* the interpreter's file; 0: none was detected */
	struct ef_ruby file; /* its entry, copied once a sample */
	u32 has_begun;
	u32 has_run; /* vm_exec_core took the frames of the rb_vm_exec that called it */
	u64 frame;
	u64 last;       /* the outermost frame */
	u64 context[3]; /* rb_execution_context_t: stack, its words, frame */
	u64 words[7];   /* rb_control_frame_t: pc, sp, iseq, self, ep, block, JIT */
	u64 env[3];     /* method entry or lexical scope, the environment around, flags */
	u64 jit[RUBY_JIT_WORDS];
};

#endif
