/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Stacks of threads that wait already: they waited before the agent came, or wait for long and were left out as the wait
 * began, or their stack was cut then. Such a thread does not run, so that its stack stays as it is; user space reads the
 * pages of it, one after the other as this program comes upon them (off-cpu/pages.h), and runs it again. The iterator
 * gives the task, of which the kernel shows the kernel's frames and the registers.
 *
 * docs/decisions/bpf/waiting-stacks.md
 */
#define SCRATCH late_scratch
#include "off-cpu/pages.h"
#include "off-cpu/threads.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EF_LATE_REQUESTS);
	__type(key, u32);
	__type(value, struct ef_late_request);
} late_stacks SEC(".maps");

static __always_inline bool waits_since(const struct ef_thread *t, u64 since_ns)
{
	return t && t->since_ns == since_ns && t->state > EF_THREAD_RUNNABLE;
}

static __always_inline struct ef_scratch *begin_late_stack(struct task_struct *task)
{
	struct ef_scratch *s = take_scratch();

	if (!s)
		return NULL;
	/* from memory it is a number, as functions take it that are verified apart */
	*(volatile u64 *)&other_thread.task = (u64)task;
	other_thread.key.tgid = task->tgid;
	other_thread.missing = 0;
	s->sample.tid = task->pid;
	s->sample.ktime_ns = bpf_ktime_get_ns();
	begin_stack(s);
	read_process_id(task, &s->sample.process);
	if (!is_known_process(&s->sample.process))
		report_process(*(volatile u64 *)&other_thread.task);
	s->state.mode = KERNEL_MODE;
	return s;
}

static __always_inline void take_kernel_stack_of(struct task_struct *task, struct ef_scratch *s)
{
	long bytes = bpf_get_task_stack(task, s->trace.frames, EF_MAX_KERNEL_FRAMES * 8, 0);

	if (bytes < 0)
		count(EF_COUNTER_kernel_stack_failed);
	begin_with_kernel_frames(s, bytes < 0 ? 0 : (u32)bytes / 8);
}

/* 1: the stack is as whole as it gets. */
static __always_inline bool take_late_stack(struct task_struct *task, struct ef_scratch *s,
					    struct ef_late_request *late)
{
	take_kernel_stack_of(task, s);
	take_user_stack(s, NULL, task);
	late->sp = s->state.sp;
	late->page = other_thread.missing;
	if (other_thread.missing) {
		late->result = EF_LATE_NO_PAGE;
		return 0;
	}
	if (s->state.marker == EF_MARKER_PENDING && !late->is_last_try) {
		late->result = EF_LATE_NO_TABLE;
		return 0;
	}
	end_user_stack(s, 1);
	return 1;
}

/* From when the wait has its own stack. */
static __always_inline u64 late_from(const struct ef_thread *t, const struct ef_late_request *late)
{
	if (t->late.since_ns == late->since_ns)
		return t->late.from_ns;
	if (!t->is_from_before)
		return bpf_ktime_get_ns();
	return late->since_ns > late->begin_ns ? late->since_ns : late->begin_ns;
}

/* Nothing else writes `late`, and its readers compare since_ns: it does no harm if the thread comes back now. */
static __always_inline void keep_late_stack(struct ef_thread *t, struct ef_late_request *late, u64 trace_hash,
					    u32 label_bytes)
{
	u64 since_ns = late->since_ns, from_ns = late_from(t, late);

	t->late.since_ns = 0;
	asm volatile("" ::: "memory");
	t->late.trace_hash = trace_hash;
	t->late.label_bytes = label_bytes;
	t->late.from_ns = from_ns;
	asm volatile("" ::: "memory");
	t->late.since_ns = since_ns;
	late->result = EF_LATE_TAKEN;
	count(EF_COUNTER_waits_sampled_late);
}

/* Run by the agent for the threads in `late_stacks`. */
SEC("iter/task")
int take_late(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task)
		return 0;
	u32 tid = task->pid;
	struct ef_late_request *late = bpf_map_lookup_elem(&late_stacks, &tid);
	if (!late || late->result >= EF_LATE_OVER)
		return 0;
	struct ef_thread *t = thread_of(tid);
	if (!waits_since(t, late->since_ns)) {
		late->result = EF_LATE_OVER;
		return 0;
	}
	if (t->trace_hash && !t->is_stack_cut && !late->is_again) {
		keep_late_stack(t, late, t->trace_hash, t->label_bytes);
		return 0;
	}
	struct ef_scratch *s = begin_late_stack(task);
	if (!s)
		return 0;
	if (take_late_stack(task, s, late)) {
		if (finish_trace(s))
			late->result = EF_LATE_FAILED;
		else if (waits_since(t, late->since_ns))
			keep_late_stack(t, late, s->state.hash, keep_labels(s, tid));
		else
			late->result = EF_LATE_OVER;
	}
	release_scratch(s);
	return 0;
}

/*
 * The agent runs it once, for each thread: no switch was seen of threads that wait already, and they may wait for days. A
 * thread that has a CPU, or waits for one, is met at its next switch.
 */
SEC("iter/task")
int note_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || !has_program(task))
		return 0;
	u64 state = state_of(task);
	if (!state || state & (TASK_WAKING | TASK_DEAD) || thread_of(task->pid))
		return 0;
	struct ef_thread *t = begin_thread(task, task->pid, reason_of_wait(task, state), bpf_ktime_get_ns());
	if (t) {
		t->is_from_before = 1;
		count(EF_COUNTER_threads_found_waiting);
	}
	return 0;
}
