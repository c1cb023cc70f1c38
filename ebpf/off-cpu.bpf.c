/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Where threads wait, with --off-cpu: an object of its own, loaded only then. At each switch the time of the thread that
 * comes and of the one that goes is added to the state that it was in: those totals are exact. Of some of those that go
 * the stack is taken (off-cpu/choice.h), as they leave: that is when they run, so that their memory can be read. What they
 * have waited is known when they come back: then the sample goes out, with the stack from before.
 *
 * The scheduler calls with interrupts off and its queue locked. docs/decisions/bpf/off-cpu.md says what else was tried.
 */
#include "source.h"
#include "off-cpu/choice.h"
#include "off-cpu/interrupt.h"
#include "off-cpu/threads.h"
#include "off-cpu/waits.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The program that takes the stacks is replaced as the sampler is. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 4);
} wait_samplers SEC(".maps");

/* The compiler must not move what is written between these two. */
static __always_inline void begin_change(struct ef_thread *t)
{
	t->begun_version++;
	asm volatile("" ::: "memory");
}

static __always_inline void end_change(struct ef_thread *t)
{
	asm volatile("" ::: "memory");
	t->ended_version = t->begun_version;
}

/* The program that the thread runs is another one since it was last seen. */
static __always_inline bool has_changed_program(const struct ef_thread *t, struct task_struct *task)
{
	return (u32)task->group_leader->self_exec_id != t->process.exec_id;
}

static __always_inline void forget_labels(struct ef_thread *t, u32 tid)
{
	if (t->label_bytes || t->late.label_bytes)
		bpf_map_delete_elem(&wait_labels, &tid);
	t->label_bytes = 0;
	t->late.label_bytes = 0;
}

/* Sends the wait with the labels that were kept; without them where an interrupted program works in the scratch memory. */
static __always_inline void output_wait(struct ef_wait *wait, u32 tid, u64 label_bytes)
{
	struct ef_kept_labels *labels = label_bytes ? bpf_map_lookup_elem(&wait_labels, &tid) : NULL;
	struct ef_scratch *s = labels ? take_scratch() : NULL;

	OPAQUE(label_bytes);
	if (label_bytes > EF_LABELS_BYTES)
		label_bytes = EF_LABELS_BYTES;
	if (!s) {
		output_sample(&wait->sample, sizeof(*wait));
		return;
	}
	struct ef_labelled_wait *all = &s->record.labelled_wait;
	wait->sample.label_bytes = label_bytes;
	all->wait = *wait;
	copy_value(all->labels, labels->bytes);
	output_sample(&all->wait.sample, sizeof(*wait) + label_bytes);
	release_scratch(s);
}

/* A sample of a part of the wait, unless that part is empty. `is_late`: with the stack that was taken while it lasted. */
static __always_inline void report_part(const struct ef_thread *t, u32 state, u32 is_late, u64 from_ns, u64 to_ns)
{
	u32 tid = t->tid;

	if (from_ns < t->reported_ns)
		from_ns = t->reported_ns;
	if (to_ns <= from_ns)
		return;
	struct ef_wait wait = {
		.sample = {
			.type = EF_RECORD_SAMPLE,
			.origin = EF_ORIGIN_OFF_CPU,
			.cpu = t->cpu,
			.trace_hash = is_late ? t->late.trace_hash : t->trace_hash,
			.ktime_ns = to_ns,
			.value = is_late ? to_ns - from_ns : weigh(to_ns - from_ns, t->weight),
			.process = t->process,
			.tid = tid,
		},
		.state = state,
		.waker = t->waker,
	};
	__builtin_memcpy(wait.sample.comm, t->comm, sizeof(wait.sample.comm));
	count(EF_COUNTER_samples);
	count(EF_COUNTER_waits_reported);
	output_wait(&wait, tid, is_late ? t->late.label_bytes : t->label_bytes);
}

/* When the thread could have gone on. */
static __always_inline u64 end_of_reason(const struct ef_thread *t, u64 now_ns)
{
	if (t->state == EF_THREAD_RUNNABLE)
		return t->since_ns;
	return t->woken_ns >= t->since_ns && t->woken_ns < now_ns ? t->woken_ns : now_ns;
}

static __always_inline bool is_sampled_state(u32 state)
{
	return config.wait_state == EF_THREAD_RUNNING || config.wait_state == state;
}

/* For its reason until woken_ns, then for a CPU. */
static __always_inline void report_parts(const struct ef_thread *t, u32 is_late, u64 from_ns, u64 woken_ns,
					 u64 to_ns)
{
	report_part(t, t->state, is_late, from_ns, woken_ns < to_ns ? woken_ns : to_ns);
	if (is_sampled_state(EF_THREAD_RUNNABLE))
		report_part(t, EF_THREAD_RUNNABLE, is_late, woken_ns > from_ns ? woken_ns : from_ns, to_ns);
}

/* Reports what the thread has waited until now, if its stack was taken. A late stack stands for the wait since it was taken. */
static __always_inline void report_wait(struct ef_thread *t, u64 now_ns)
{
	bool has_late = t->late.since_ns == t->since_ns;
	u64 woken_ns = end_of_reason(t, now_ns), late_ns = has_late ? t->late.from_ns : now_ns;

	if (!t->trace_hash && !has_late)
		return;
	if (late_ns > now_ns)
		late_ns = now_ns;
	if (t->trace_hash)
		report_parts(t, 0, t->since_ns, woken_ns, late_ns);
	if (has_late)
		report_parts(t, 1, late_ns, woken_ns, now_ns);
	t->reported_ns = now_ns;
}

/* The clocks of two CPUs may differ by a moment. */
static __always_inline u64 elapsed(u64 from_ns, u64 to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static __always_inline void add_time(struct ef_thread *t, u32 state, u64 from_ns, u64 to_ns)
{
	t->times_ns[state & (EF_THREAD_STATES - 1)] += elapsed(from_ns, to_ns);
}

/* A thread comes that was taken for running: the switch that it left at was missed, so what it has waited for is not known. The
 * scheduler has counted how long it ran. */
static __always_inline void leave_untold(struct ef_thread *t, const struct task_struct *task, u64 now_ns)
{
	u64 left_ns = t->since_ns + elapsed(t->exec_ns, task->se.sum_exec_runtime);

	if (left_ns > now_ns)
		left_ns = now_ns;
	begin_change(t);
	add_time(t, EF_THREAD_RUNNING, t->since_ns, left_ns);
	t->since_ns = left_ns;
	t->woken_ns = 0;
	t->waits[EF_THREAD_OTHER]++;
	t->state = EF_THREAD_OTHER;
	end_change(t);
	count(EF_COUNTER_threads_left_untold);
}

/* Sends the thread's times to user space: it ends, runs another program, or is no longer chosen. */
static __always_inline void end_thread(struct ef_thread *t, u32 tid)
{
	if (bpf_ringbuf_output(&records, t, sizeof(*t), BPF_RB_NO_WAKEUP))
		count(EF_COUNTER_threads_lost_ring);
	else
		count(EF_COUNTER_threads_ended);
	bpf_map_delete_elem(&threads, &tid);
}

static __always_inline void switch_in(struct task_struct *next, u64 now_ns)
{
	u32 tid = next->pid;
	struct ef_thread *t = thread_of(tid);

	if (!t) {
		begin_thread(next, tid, EF_THREAD_RUNNING, now_ns);
		return;
	}
	if (!is_chosen(next->tgid)) {
		end_thread(t, tid);
		return;
	}
	if (t->state == EF_THREAD_RUNNING) {
		count(EF_COUNTER_switches_missed);
		leave_untold(t, next, now_ns);
	}
	u32 state = t->state & (EF_THREAD_STATES - 1);
	u64 woken_ns = end_of_reason(t, now_ns);
	learn_usual(&t->usual_ns[state], elapsed(t->since_ns, now_ns));
	report_wait(t, now_ns);
	begin_change(t);
	add_time(t, state, t->since_ns, woken_ns);
	add_time(t, EF_THREAD_RUNNABLE, woken_ns, now_ns);
	t->state = EF_THREAD_RUNNING;
	t->since_ns = now_ns;
	t->exec_ns = next->se.sum_exec_runtime;
	t->trace_hash = 0;
	t->is_stack_cut = 0;
	t->is_from_before = 0;
	forget_labels(t, tid);
	end_change(t);
}

/* Where a switch to the thread was missed: the scheduler has counted how long it runs since. */
static __always_inline u64 arrival_of(const struct task_struct *task, const struct ef_thread *t, u64 now_ns)
{
	u64 ran_ns = task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;

	return ran_ns < elapsed(t->since_ns, now_ns) ? now_ns - ran_ns : t->since_ns;
}

/* True if the stack is to be taken. */
static __always_inline bool switch_out(struct task_struct *prev, bool is_preempted, u64 now_ns)
{
	u32 tid = prev->pid;
	u64 state = state_of(prev);
	struct ef_thread *t = thread_of(tid);

	if (t && has_changed_program(t, prev)) {
		add_time(t, EF_THREAD_RUNNING, t->since_ns, now_ns);
		t->since_ns = now_ns;
		end_thread(t, tid);
		t = NULL;
	}
	if (!t)
		t = begin_thread(prev, tid, EF_THREAD_RUNNING, now_ns);
	if (!t)
		return 0;
	if (t->state != EF_THREAD_RUNNING) {
		count(EF_COUNTER_switches_missed);
		switch_in(prev, arrival_of(prev, t, now_ns));
	}
	u32 reason = is_preempted || !state ? EF_THREAD_RUNNABLE : reason_of_wait(prev, state);
	begin_change(t);
	add_time(t, EF_THREAD_RUNNING, t->since_ns, now_ns);
	t->since_ns = now_ns;
	t->woken_ns = !is_preempted && state & TASK_WAKING ? now_ns : 0;
	t->waker.tgid = 0;
	t->waits[reason & (EF_THREAD_STATES - 1)]++;
	t->reported_ns = 0;
	t->cpu = bpf_get_smp_processor_id();
	t->state = reason;
	end_change(t);
	if (!is_preempted && state & TASK_DEAD) {
		end_thread(t, tid);
		return 0;
	}
	if (!is_sampled_state(reason))
		return 0;
	u32 usual_ns = t->usual_ns[reason & (EF_THREAD_STATES - 1)];
	t->weight = choose_wait(usual_ns, now_ns, !usual_ns && !is_known_process(&t->process));
	return t->weight != 0;
}

/* bool preempt, struct task_struct *prev, struct task_struct *next; since 5.18 also prev_state */
SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 now_ns = bpf_ktime_get_ns();

	if (has_program(next))
		switch_in(next, now_ns);
	if (!has_program(prev) || !switch_out(prev, ctx[0] & 1, now_ns))
		return 0;
	bpf_tail_call(ctx, &wait_samplers, 0);
	count(EF_COUNTER_sampler_missing);
	return 0;
}

/* A thread that runs another program takes over the number of its process's first thread: nobody has its own any more.
 * struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm */
SEC("tp_btf/sched_process_exec")
int on_renumbered(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 tid = ctx[1];
	struct ef_thread *t = tid == (u32)task->pid ? NULL : thread_of(tid);
	u64 now_ns = bpf_ktime_get_ns();

	if (!t)
		return 0;
	begin_change(t);
	add_time(t, EF_THREAD_RUNNING, t->since_ns, now_ns);
	t->since_ns = now_ns;
	end_change(t);
	end_thread(t, tid);
	return 0;
}

/* Frames of BPF stand before the scheduler's, how many depends on the kernel and on what else is attached. */
#define MAX_SKIPPED 8

static __always_inline bool is_scheduler(u64 address)
{
	return address >= config.scheduler_start && address < config.scheduler_end;
}

static __always_inline u32 find_scheduler(const struct ef_scratch *s)
{
#pragma unroll
	for (u32 i = 0; i < MAX_SKIPPED; i++)
		if (is_scheduler(s->trace.frames[i]))
			return i;
	return 0;
}

static __always_inline void take_kernel_stack_of_wait(void *ctx, struct ef_scratch *s)
{
	u32 zero = 0;
	struct ef_wait_rate *r = bpf_map_lookup_elem(&wait_rate, &zero);
	u32 frames = get_kernel_stack(ctx, s, r ? r->skipped & 0xff : 0);

	if (r && config.scheduler_end && !is_scheduler(s->trace.frames[0])) {
		get_kernel_stack(ctx, s, 0);
		r->skipped = find_scheduler(s);
		frames = get_kernel_stack(ctx, s, r->skipped & 0xff);
	}
	begin_with_kernel_frames(s, frames);
}

/* Takes the stack of the thread that leaves: it runs until the switch is made. */
SEC("tp_btf/sched_switch")
int take_wait(u64 *ctx)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct ef_thread *t = thread_of(tid);

	if (!t)
		return 0;
	struct ef_scratch *s = begin_chosen_sample(EF_ORIGIN_OFF_CPU, 0);
	if (!s)
		return 0;
	s->state.mode = KERNEL_MODE;
	take_kernel_stack_of_wait(ctx, s);
	take_user_stack(s, NULL, (void *)bpf_get_current_task());
	end_user_stack(s, 1);
	if (!finish_trace(s)) {
		t->process = s->sample.process;
		__builtin_memcpy(t->comm, s->sample.comm, sizeof(t->comm));
		t->trace_hash = s->state.hash;
		t->label_bytes = keep_labels(s, tid);
		t->is_stack_cut = s->state.unread || s->state.marker == EF_MARKER_PENDING;
		count(EF_COUNTER_waits_sampled);
	}
	release_scratch(s);
	return 0;
}

/* Called by whoever ends a wait. The thread may still be on its way to it: then it is not a wait yet. */
SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct ef_thread *t = thread_of(task->pid);

	if (!t || t->state <= EF_THREAD_RUNNABLE || t->woken_ns)
		return 0;
	if (t->trace_hash && bpf_get_current_pid_tgid() && !in_interrupt(ctx)) {
		u64 waker = bpf_get_current_pid_tgid();
		t->waker.tid = (u32)waker;
		t->waker.tgid = waker >> 32;
		bpf_get_current_comm(t->waker.comm, sizeof(t->waker.comm));
	}
	t->woken_ns = bpf_ktime_get_ns();
	return 0;
}

/* Run by the agent for a thread that waits longer than an interval: what it has waited so far. */
SEC("raw_tp")
int report_waiting(struct bpf_raw_tracepoint_args *ctx)
{
	u32 tid = ctx->args[0];
	struct ef_thread *t = thread_of(tid);

	if (t && t->state != EF_THREAD_RUNNING)
		report_wait(t, bpf_ktime_get_ns());
	return 0;
}
