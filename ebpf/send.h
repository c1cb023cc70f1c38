/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What becomes of a sample once its stack is taken: its trace, unless user space has it, and the event. */
#ifndef EF_SEND_H
#define EF_SEND_H

#include "functions.h"
#include "sent.h"
#include "unwind.h"

/* A process that may end before user space looks on its own account (once a second). */
#define YOUNG_NS 3000000000ULL

static __always_inline bool in_kernel(const struct ef_scratch *s)
{
	return !is_user_mode(*(const volatile u64 *)&s->state.mode);
}

/* Global, so that the loop is verified apart from the sampler. */
__noinline int hash_kernel_frames(u32 n)
{
	struct ef_scratch *s = get_scratch();
	if (!s)
		return 0;
	for (u32 i = 0; i < EF_MAX_KERNEL_FRAMES; i++) {
		if (i >= n)
			break;
		fold(s, s->trace.frames[i]);
	}
	return 0;
}

/* Frames of the kernel that are in place already: the user's follow. */
static __always_inline void begin_with_kernel_frames(struct ef_scratch *s, u32 frames)
{
	s->state.kernel_frames = frames;
	s->state.words = frames;
	hash_kernel_frames(frames);
}

static __always_inline bool is_young(struct ef_scratch *s)
{
	return bpf_ktime_get_boot_ns() - s->sample.process.start_boottime_ns < YOUNG_NS;
}

/* Sends the trace unless user space has it. A trace counts as sent only once its output has succeeded. */
static __always_inline int send_trace(struct ef_scratch *s)
{
	u64 hash = s->state.hash;
	u64 words = s->state.words;
	struct ef_seen_set *set = set_of_trace(hash);

	OPAQUE(words);
	if (words > EF_MAX_WORDS)
		words = EF_MAX_WORDS;
	if (set && is_seen(set, hash)) {
		count(EF_COUNTER_traces_known);
		return 0;
	}
	send_functions(s);
	s->trace.type = EF_RECORD_TRACE;
	s->trace.kernel_frames = s->state.kernel_frames;
	s->trace.runtime_file = s->state.runtime_file;
	s->trace.user_frames = s->state.user_frames;
	s->trace.words = words;
	s->trace.flags = (s->state.has_anonymous ? EF_TRACE_OF_PROCESS : 0) |
			 (s->state.has_interpreted ? EF_TRACE_INTERPRETED : 0);
	s->trace.process = s->sample.process;
	s->trace.trace_hash = hash;
	u64 bytes = offsetof(struct ef_trace, frames) + words * 8;
	/* the process knows the names of its interpreted and compiled functions: ask while it lives */
	u64 wake = s->state.has_anonymous && is_young(s) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_output(&records, &s->trace, bytes, wake)) {
		count(EF_COUNTER_traces_lost_ring);
		return 1;
	}
	count(EF_COUNTER_traces_sent);
	if (set)
		mark_seen(set, hash);
	return 0;
}

/* Folds what makes traces differ beside their frames, and sends the trace; not 0 where that failed. */
static __always_inline int finish_trace(struct ef_scratch *s)
{
	/* what a frame means in memory without a file is known inside this process only */
	if (s->state.has_anonymous) {
		fold(s, (u64)s->sample.process.tgid << 32 | s->sample.process.exec_id);
		fold(s, s->sample.process.start_boottime_ns);
	}
	s->state.hash = mix64(s->state.hash ^ s->state.words) ?: 1;
	return send_trace(s);
}

/* A sample, with what its source adds to it. */
static __always_inline void output_sample(const struct ef_sample *sample, u64 bytes)
{
	u64 waiting = bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA);
	u64 flags = waiting >= config.wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_output(&records, (void *)sample, bytes, flags))
		count(EF_COUNTER_samples_lost_ring);
	else
		count(EF_COUNTER_samples_sent);
}

/* False where the trace did not go out, and the sample with it. */
static __always_inline bool send_sample(struct ef_scratch *s)
{
	if (finish_trace(s))
		return 0;
	u64 label_bytes = s->sample.label_bytes;

	OPAQUE(label_bytes);
	if (label_bytes > EF_LABELS_BYTES)
		label_bytes = EF_LABELS_BYTES;
	s->sample.trace_hash = s->state.hash;
	output_sample(&s->sample, sizeof(s->sample) + label_bytes);
	return 1;
}

static __always_inline void finish_sample(struct ef_scratch *s)
{
	end_user_stack(s, in_kernel(s));
	send_sample(s);
	release_scratch(s);
}

#endif
