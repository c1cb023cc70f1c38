/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Threads that leave a CPU without a word: a kernel may tell nobody of some switches (seen in a virtual machine, of threads of
 * its own daemons). Each CPU notes who came last; if another one is found there, the one noted has left. How long it ran the
 * scheduler has counted.
 */
#ifndef EF_UNTOLD_H
#define EF_UNTOLD_H

#include "../kernel.h"
#include "records.h"

/* Of each CPU. */
struct ef_arrival {
	u64 task;     /* its address */
	u64 since_ns; /* since when it runs */
	u32 tid;      /* 0: nobody that is counted */
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ef_arrival);
} arrivals SEC(".maps");

/* When a thread left that is taken for running. `task` may be gone, and its memory another's. */
static __always_inline u64 departure_of(const struct ef_thread *t, const struct task_struct *task, u64 now_ns)
{
	if ((u32)BPF_CORE_READ(task, pid) != t->tid)
		return now_ns;
	u64 exec_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	u64 left_ns = t->since_ns + (exec_ns > t->exec_ns ? exec_ns - t->exec_ns : 0);
	return left_ns < now_ns ? left_ns : now_ns;
}

#endif
