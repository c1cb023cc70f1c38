/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The sampler: one perf event a CPU runs `tick`, which jumps to the `sample` that is in place: the first one knows no
 * runtime, a wider one takes over when a runtime is first detected. Kernel stack, then user stack, folded into a hash on
 * the way; the trace itself is sent once, from then on 72 bytes a sample. docs/architecture.md shows the whole path.
 */
#include "source.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	struct ef_scratch *s = begin_sample(EF_ORIGIN_CPU, 1);
	if (!s)
		return 0;
	take_stacks(ctx, s, &ctx->regs);
	if (s->state.unread) {
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
 * not form the key of a file that it means to unwind through. Run by the agent itself (BPF_PROG_TEST_RUN).
 */
SEC("raw_tp")
int report_mapped(struct bpf_raw_tracepoint_args *ctx)
{
	struct ef_scratch *s = take_scratch();
	if (!s)
		return 0;
	s->sample.ktime_ns = bpf_ktime_get_ns();
	s->sample.process.tgid = bpf_get_current_pid_tgid() >> 32;
	s->state.mm = KERNEL_WORD(bpf_get_current_task(), task_struct, mm);
	if (find_vma(s, ctx->args[0]) == VMA_OK && s->vma.file)
		attach_file(s, &s->mappings[0], &s->vma);
	release_scratch(s);
	return 0;
}
