/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * A source of samples. A program of one begins a sample, lets stacks be taken, and finishes it:
 *
 *	struct ef_scratch *s = begin_sample(EF_ORIGIN_…, value);
 *	if (!s)
 *		return 0;
 *	take_stacks(ctx, s, registers that were interrupted, or NULL: the kernel's own code);
 *	finish_sample(s);
 *
 * Any kind of program does that may call bpf_get_stack(). Where it runs decides which memory it works in: see
 * memory.h. A source is a line in profile-types.h.
 */
#ifndef EF_SOURCE_H
#define EF_SOURCE_H

#include "process.h"
#include "send.h"
#include "user-regs.h"

/* By chance, sample by sample: what is left has the same shares. */
static __always_inline bool is_shed(void)
{
	u32 zero = 0;
	u32 *share = bpf_map_lookup_elem(&shed_share, &zero);
	return share && *share && bpf_get_prandom_u32() < *share;
}

/* Whether the process is one of those to be sampled. */
static __always_inline bool is_chosen(u32 tgid)
{
	if (config.targets == EF_TARGETS_NONE)
		return 1;
	return !bpf_map_lookup_elem(&targets, &tgid) == (config.targets == EF_TARGETS_EXCLUDED);
}

/* Whether what runs now is to be sampled at all; counts what is not. */
static __always_inline bool is_wanted(u64 pid_tgid)
{
	if (!pid_tgid && !config.send_idle) {
		count(EF_COUNTER_samples_idle);
		return 0;
	}
	if (!is_chosen(pid_tgid >> 32)) {
		count(EF_COUNTER_samples_filtered);
		return 0;
	}
	count(EF_COUNTER_samples);
	if (is_shed()) {
		count(EF_COUNTER_samples_shed);
		return 0;
	}
	return 1;
}

/* Of the thread that runs, which is to be sampled; its process is introduced before the sample is finished. */
static __always_inline struct ef_scratch *begin_unknown_sample(enum ef_origin origin, u64 value)
{
	u64 pid_tgid = bpf_get_current_pid_tgid();
	struct ef_scratch *s = take_scratch();

	if (!s)
		return NULL;
	s->sample.type = EF_RECORD_SAMPLE;
	s->sample.origin = origin;
	s->sample.value = value;
	s->sample.cpu = bpf_get_smp_processor_id();
	s->sample.tid = (u32)pid_tgid;
	s->sample.ktime_ns = bpf_ktime_get_ns();
	bpf_get_current_comm(s->sample.comm, sizeof(s->sample.comm));
	begin_stack(s);
	read_process_id((void *)bpf_get_current_task(), &s->sample.process);
	return s;
}

static __always_inline void introduce_process(struct ef_scratch *s)
{
	if (!is_known_process(&s->sample.process))
		report_process((u64)bpf_get_current_task());
}

static __always_inline struct ef_scratch *begin_chosen_sample(enum ef_origin origin, u64 value)
{
	struct ef_scratch *s = begin_unknown_sample(origin, value);

	if (s)
		introduce_process(s);
	return s;
}

/* Of the thread that runs. NULL: it is not sampled. The memory is this sample's until it is finished. */
static __always_inline struct ef_scratch *begin_sample(enum ef_origin origin, u64 value)
{
	return is_wanted(bpf_get_current_pid_tgid()) ? begin_chosen_sample(origin, value) : NULL;
}

/* Without the first `skip` frames; how many there are. */
static __always_inline u32 get_kernel_stack(void *ctx, struct ef_scratch *s, u64 skip)
{
	long bytes = bpf_get_stack(ctx, s->trace.frames, EF_MAX_KERNEL_FRAMES * 8, skip);
	if (bytes < 0) {
		count(EF_COUNTER_kernel_stack_failed);
		return 0;
	}
	u32 frames = (u32)bytes / 8;
	if (frames >= EF_MAX_KERNEL_FRAMES)
		count(EF_COUNTER_kernel_stack_cut);
	return frames;
}

static __always_inline void take_kernel_stack(void *ctx, struct ef_scratch *s)
{
	s->state.kernel_frames = 0;
	if (in_kernel(s))
		begin_with_kernel_frames(s, get_kernel_stack(ctx, s, 0));
}

static __always_inline void take_user_stack(struct ef_scratch *s, const struct ef_user_regs *interrupted,
					    struct task_struct *task)
{
	u64 mode = 0;

	s->state.mm = KERNEL_WORD(task, task_struct, mm);
	if (!s->state.mm) {
		count(EF_COUNTER_user_none);
		return;
	}
	u32 failed = load_user_regs(s, interrupted, task, &mode);
	if (failed) {
		count(failed);
		return;
	}
	if (is_32_bit(mode)) {
		count(EF_COUNTER_user_cut_compat);
		push_word(s, FRAME_WORD(EF_FRAME_MARKER, EF_MARKER_COMPAT));
		return;
	}
	note_trampoline();
	unwind_user(s);
}

/* Kernel and user stack. `ctx` is the program's own argument; `interrupted`: registers at the event, NULL where the
 * kernel itself came by. */
static __always_inline void take_stacks(void *ctx, struct ef_scratch *s, const struct ef_user_regs *interrupted)
{
	/* so that it need not be asked whether &ctx->regs is NULL: older kernels go through both answers */
	__builtin_assume(ctx != NULL);
	/* read once: of a second reading clang may make a pointer into ctx, which the verifier refuses */
	s->state.mode = interrupted ? PROCESSOR_MODE(interrupted) : KERNEL_MODE;
	take_kernel_stack(ctx, s);
	take_user_stack(s, interrupted, (void *)bpf_get_current_task());
}

#endif
