/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the Perl unwinder keeps for the length of a sample. */
#ifndef EF_PERL_STATE_H
#define EF_PERL_STATE_H

#include "../kernel.h"
#include "records.h"

/* Words of a context that are read, a power of two */
#define PERL_CONTEXT_WORDS 16

/* The Perl contexts of the sampled thread that were not taken yet. */
struct ef_perl_state {
	u64 key;             /* the interpreter's file; 0: none was detected */
	struct ef_perl file; /* its entry, copied once a sample */
	u32 has_begun;
	u32 is_within; /* a run took contexts of the stack and left some */
	u32 has_run;   /* a native frame of runops was met */
	u32 is_called; /* it was called by call_sv, or for an overloaded operator */
	u32 between;   /* native frames of Perl's file since */
	u32 frames;    /* of the trace when it was */
	u32 left;      /* contexts that may still be looked at in this sample */
	s32 stack_type;
	s64 index;     /* of the next context, below 0: the stack has none left */
	u64 contexts;  /* the stack's */
	u64 stack;     /* PERL_SI; 0: no context is left */
	u64 statement; /* COP of the next frame */
	u64 compiling; /* address of the statement that is being compiled */
	u64 words[6];  /* PERL_SI: stack, contexts, previous, next, index and highest, and its type */
	u64 context[PERL_CONTEXT_WORDS];
	u64 value[2]; /* head of an SV */
	u64 body[5];  /* XPVCV from xcv_gv on: name, file, pad, outside, flags */
	u64 name[2];  /* XPVGV: name and package */
};

#endif
