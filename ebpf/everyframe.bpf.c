/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The sampler: one perf event a CPU runs `tick`, which jumps to the `sample` that is in place: the first one knows no
 * runtime, a wider one takes over when a runtime is first met. Kernel stack, then user stack, folded into a hash on
 * the way; the trace itself is sent once, from then on 64 bytes a sample. docs/architecture.md tells the whole path.
 */
#include "maps.h"
#include "mapping.h"
#include "process.h"
#include "table.h"
#include "unwind.h"
#include "user-regs.h"

/* A process that may end before user space looks on its own account (once a second). */
#define YOUNG_NS 3000000000ULL

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline void begin_sample(struct ef_scratch *s, u64 pid_tgid)
{
	s->sample.type = EF_RECORD_SAMPLE;
	s->sample.origin = 0;
	s->sample.flags = 0;
	s->sample.cpu = bpf_get_smp_processor_id();
	s->sample.tid = (u32)pid_tgid;
	s->sample.ktime_ns = bpf_ktime_get_ns();
	bpf_get_current_comm(s->sample.comm, sizeof(s->sample.comm));
	s->words = 0;
	s->user_frames = 0;
	s->hash = 0x9e3779b97f4a7c15ULL;
	s->has_anonymous = 0;
	s->marker = EF_MARKER_NONE;
	s->next_mapping = 0;
	s->mappings[0].length = s->mappings[1].length = s->mappings[2].length = s->mappings[3].length = 0;
	s->frame_pointer_frames = 0;
	s->vma_lookups = 0;
	s->has_interpreted = 0;
	s->trace.runtime_file = 0;
	s->marker_if_guess_fails = EF_MARKER_NONE;
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

static __always_inline bool in_kernel(const struct ef_scratch *s)
{
	return !is_user_mode(*(const volatile u64 *)&s->mode);
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
	s->trace.kernel_frames = frames;
	s->words = frames;
	hash_kernel_frames(frames);
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
	unwind_user(s, in_kernel(s));
}

static __always_inline bool is_young(struct ef_scratch *s)
{
	return bpf_ktime_get_boot_ns() - s->sample.process.start_boottime_ns < YOUNG_NS;
}

/* Sends the trace unless user space has it. A trace counts as sent only once its output has succeeded. */
static __always_inline int send_trace(struct ef_scratch *s)
{
	u64 hash = s->hash;
	u64 words = s->words;
	u32 one = 1;

	OPAQUE(words);
	if (words > EF_MAX_WORDS)
		words = EF_MAX_WORDS;
	if (bpf_map_lookup_elem(&seen, &hash)) {
		count(EF_COUNTER_traces_known);
		return 0;
	}
	s->trace.type = EF_RECORD_TRACE;
	s->trace.user_frames = s->user_frames;
	s->trace.words = words;
	s->trace.flags =
		(s->has_anonymous ? EF_TRACE_OF_PROCESS : 0) | (s->has_interpreted ? EF_TRACE_INTERPRETED : 0);
	s->trace.process = s->sample.process;
	s->trace.trace_hash = hash;
	u64 bytes = offsetof(struct ef_trace, frames) + words * 8;
	/* the process knows the names of its interpreted and compiled functions: ask while it lives */
	u64 wake = s->has_anonymous && is_young(s) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_output(&records, &s->trace, bytes, wake)) {
		count(EF_COUNTER_traces_lost_ring);
		return 1;
	}
	count(EF_COUNTER_traces_sent);
	bpf_map_update_elem(&seen, &hash, &one, BPF_ANY);
	return 0;
}

static __always_inline void send_sample(struct ef_scratch *s)
{
	/* what a frame means in memory without a file is known inside this process only */
	if (s->has_anonymous) {
		fold(s, (u64)s->sample.process.tgid << 32 | s->sample.process.exec_id);
		fold(s, s->sample.process.start_boottime_ns);
	}
	s->hash = mix64(s->hash ^ s->words);
	if (send_trace(s))
		return;
	s->sample.trace_hash = s->hash;
	u64 waiting = bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA);
	u64 flags = waiting >= config.wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_output(&records, &s->sample, sizeof(s->sample), flags))
		count(EF_COUNTER_samples_lost_ring);
	else
		count(EF_COUNTER_samples_sent);
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
	struct ef_scratch *s = get_scratch();
	if (!s) {
		count(EF_COUNTER_scratch_missing);
		return 0;
	}
	struct task_struct *task = (void *)bpf_get_current_task();
	count(EF_COUNTER_samples);
	begin_sample(s, pid_tgid);
	read_process_id(task, &s->sample.process);
	report_sampled_process(s, task);
	/* read once: of a second reading clang may make a pointer into ctx, which the verifier refuses */
	s->mode = PROCESSOR_MODE(&ctx->regs);
	take_kernel_stack(ctx, s);
	take_user_stack(ctx, s, task);
	send_sample(s);
	return 0;
}

/* Taking the jump or the next one is all that a change of the sampler means: no tick is lost, none counted twice. */
SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	bpf_tail_call(ctx, &samplers, 0);
	count(EF_COUNTER_sampler_missing);
	return 0;
}
