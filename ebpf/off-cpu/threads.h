/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The threads that are counted, and what is kept of them while they wait. */
#ifndef EF_THREADS_H
#define EF_THREADS_H

#include "../source.h"
#include "waits.h"

/* One hash table on all kernels: user space reads it whole, in few system calls, which it can't with task storage. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct ef_thread);
} threads SEC(".maps");

/* Labels of threads that wait, by TID, until they run again. */
struct ef_kept_labels {
	u8 bytes[EF_LABELS_BYTES];
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct ef_kept_labels);
} wait_labels SEC(".maps");

static __always_inline struct ef_thread *thread_of(u32 tid)
{
	return bpf_map_lookup_elem(&threads, &tid);
}

/* The idle task, and threads of the kernel's own, have nobody who would ask. */
static __always_inline bool has_program(struct task_struct *task)
{
	return task->pid && !(task->flags & PF_KTHREAD);
}

static __always_inline u64 state_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return ((struct task_struct___5_10 *)task)->state;
}

/* From now on the thread is counted, in that state. NULL: it is not wanted, or is counted already, or the map is full. */
static __always_inline struct ef_thread *begin_thread(struct task_struct *task, u32 tid, u32 state, u64 now_ns)
{
	struct ef_thread t = {
		.type = EF_RECORD_THREAD,
		.state = state,
		.tid = tid,
		.first_ns = now_ns,
		.since_ns = now_ns,
		.exec_ns = task->se.sum_exec_runtime,
	};

	if (!is_chosen(task->tgid))
		return NULL;
	read_process_id(task, &t.process);
	KERNEL_READ(t.comm, sizeof(t.comm), FIELD_AT(task, task_struct, comm));
	if (bpf_map_update_elem(&threads, &tid, &t, BPF_NOEXIST)) {
		if (!thread_of(tid))
			count(EF_COUNTER_threads_full);
		return NULL;
	}
	return thread_of(tid);
}

/* How many bytes were kept. */
static __always_inline u32 keep_labels(const struct ef_scratch *s, u32 tid)
{
	if (!s->sample.label_bytes)
		return 0;
	if (!bpf_map_update_elem(&wait_labels, &tid, s->labels, BPF_ANY))
		return s->sample.label_bytes;
	count(EF_COUNTER_labels_left_out);
	return 0;
}

#endif
