/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The sampler: one perf event a CPU runs `tick`, which jumps to the `sample` that is in place: the first one knows no
 * runtime, a wider one takes over when a runtime is first met. Kernel stack, then user stack, folded into a hash on
 * the way; the trace itself is sent once, from then on 72 bytes a sample. docs/architecture.md tells the whole path.
 */
#include "maps.h"
#include "mapping.h"
#include "process.h"
#include "send.h"
#include "user-regs.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline void begin_sample(struct ef_scratch *s, enum ef_origin origin, u64 value, u64 pid_tgid)
{
	s->sample.type = EF_RECORD_SAMPLE;
	s->sample.origin = origin;
	s->sample.value = value;
	s->sample.flags = 0;
	s->sample.cpu = bpf_get_smp_processor_id();
	s->sample.tid = (u32)pid_tgid;
	s->sample.ktime_ns = bpf_ktime_get_ns();
	bpf_get_current_comm(s->sample.comm, sizeof(s->sample.comm));
	begin_stack(s);
}

static __always_inline void take_kernel_stack(struct bpf_perf_event_data *ctx, struct ef_scratch *s)
{
	s->trace.kernel_frames = 0;
	if (!in_kernel(s))
		return;
	long bytes = bpf_get_stack(ctx, s->trace.frames, EF_MAX_KERNEL_FRAMES * 8, 0);
	if (bytes < 0) {
		count(EF_COUNTER_kernel_stack_failed);
		return;
	}
	u32 frames = (u32)bytes / 8;
	if (frames >= EF_MAX_KERNEL_FRAMES)
		count(EF_COUNTER_kernel_stack_cut);
	begin_with_kernel_frames(s, frames);
}

static __always_inline void take_user_stack(struct bpf_perf_event_data *ctx, struct ef_scratch *s,
					    struct task_struct *task)
{
	u64 mode = 0;

	s->mm = (u64)BPF_CORE_READ(task, mm);
	if (!s->mm) {
		count(EF_COUNTER_user_none);
		return;
	}
	u32 failed = load_user_regs(ctx, s, task, &mode);
	if (failed) {
		count(failed);
		return;
	}
	if (is_32_bit(mode)) {
		count(EF_COUNTER_user_cut_compat);
		push_word(s, FRAME_WORD(EF_FRAME_MARKER, EF_MARKER_COMPAT));
		return;
	}
	unwind_user(s);
}

/* By chance, sample by sample: what is left has the same shares. */
static __always_inline bool is_shed(void)
{
	u32 zero = 0;
	u32 *share = bpf_map_lookup_elem(&shed_share, &zero);
	return share && *share && bpf_get_prandom_u32() < *share;
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	u64 pid_tgid = bpf_get_current_pid_tgid();
	u32 tgid = pid_tgid >> 32;

	if (!pid_tgid && !config.send_idle) {
		count(EF_COUNTER_samples_idle);
		return 0;
	}
	if (config.filter_targets && !bpf_map_lookup_elem(&targets, &tgid)) {
		count(EF_COUNTER_samples_filtered);
		return 0;
	}
	count(EF_COUNTER_samples);
	if (is_shed()) {
		count(EF_COUNTER_samples_shed);
		return 0;
	}
	struct ef_scratch *s = get_scratch();
	if (!s) {
		count(EF_COUNTER_scratch_missing);
		return 0;
	}
	struct task_struct *task = (void *)bpf_get_current_task();
	begin_sample(s, EF_ORIGIN_CPU, 1, pid_tgid);
	read_process_id(task, &s->sample.process);
	report_sampled_process(s, task);
	/* read once: of a second reading clang may make a pointer into ctx, which the verifier refuses */
	s->mode = PROCESSOR_MODE(&ctx->regs);
	take_kernel_stack(ctx, s);
	take_user_stack(ctx, s, task);
	if (s->unread) {
		/* does not come back if there is someone to see to it */
		if (config.can_defer)
			bpf_tail_call(ctx, &samplers, EF_SAMPLER_SLOT_DEFER);
		count(EF_COUNTER_stacks_not_deferred);
	}
	finish_sample(s);
	return 0;
}

/* Taking the jump or the next one is all that a change of the sampler means: no tick is lost, none counted twice. */
SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	bpf_tail_call(ctx, &samplers, EF_SAMPLER_SLOT_SAMPLE);
	count(EF_COUNTER_sampler_missing);
	return 0;
}

/*
 * Reports the file that the calling process has mapped at an address, as if it had been sampled there: user space can
 * not form the key of a file that it means to unwind through. Run by the agent itself (BPF_PROG_TEST_RUN) and only
 * before the first tick, since what it works on is that of the samples.
 */
SEC("raw_tp")
int report_mapped(struct bpf_raw_tracepoint_args *ctx)
{
	struct ef_scratch *s = get_scratch();
	if (!s)
		return 0;
	s->sample.ktime_ns = bpf_ktime_get_ns();
	s->sample.process.tgid = bpf_get_current_pid_tgid() >> 32;
	s->mm = (u64)BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), mm);
	if (find_vma(s, ctx->args[0]) == VMA_OK && s->vma.file)
		attach_file(s, &s->mappings[0], &s->vma);
	return 0;
}
