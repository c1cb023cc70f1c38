/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Who is sampled: the identity of a process, its record, and the exec, exit and fork events. */
#ifndef EF_PROCESS_H
#define EF_PROCESS_H

#include "names.h"
#include "vma.h"

static __always_inline void read_process_id(struct task_struct *task, struct ef_process_id *id)
{
	struct task_struct *leader = KERNEL_FIELD(task, task_struct, group_leader);

	id->tgid = KERNEL_FIELD(task, task_struct, tgid);
	id->exec_id = (u32)KERNEL_FIELD(leader, task_struct, self_exec_id);
	id->start_boottime_ns = KERNEL_FIELD(leader, task_struct, start_boottime);
}

static __always_inline u64 executable_file(struct task_struct *task)
{
	u64 mm = KERNEL_WORD(task, task_struct, mm);
	return mm ? KERNEL_WORD(mm, mm_struct, exe_file) : 0;
}

static __always_inline void fill_process(struct ef_process *p, struct task_struct *task, u64 ktime_ns, u64 exe)
{
	struct task_struct *leader = KERNEL_FIELD(task, task_struct, group_leader);

	p->type = EF_RECORD_PROCESS;
	p->flags = exe ? 0 : EF_PROCESS_NO_FILE;
	p->parent_tgid = KERNEL_FIELD(KERNEL_FIELD(leader, task_struct, real_parent), task_struct, tgid);
	p->uid = KERNEL_FIELD(KERNEL_FIELD(task, task_struct, cred), cred, uid.val);
	p->ktime_ns = ktime_ns;
	KERNEL_READ(p->comm, sizeof(p->comm), FIELD_AT(leader, task_struct, comm));
}

/* Bytes to send: names cut to what the record holds. */
static __always_inline u64 process_record_bytes(struct ef_process *p)
{
	u64 names = (u64)p->path_bytes + p->cgroup_bytes;

	OPAQUE(names);
	if (names > sizeof(p->names))
		names = sizeof(p->names);
	return PROCESS_NAMES_AT + names;
}

static __always_inline u64 cgroup_of_controller(u64 set, u64 controller)
{
	u64 state = KERNEL_WORD(set + controller * 8, css_set, subsys[0]);

	return state ? KERNEL_WORD(state, cgroup_subsys_state, cgroup) : 0;
}

static __always_inline u32 cgroup_level(u64 cgroup)
{
	return KERNEL_FIELD(cgroup, cgroup, level);
}

#define LOOK_AT_CONTROLLER(id) \
	if (bpf_core_enum_value_exists(enum cgroup_subsys_id, id)) { \
		u64 other = cgroup_of_controller(set, bpf_core_enum_value(enum cgroup_subsys_id, id)); \
		u32 depth = other ? cgroup_level(other) : 0; \
		if (depth > level) { \
			cgroup = other; \
			level = depth; \
		} \
	}

/* The kernfs node of a task's cgroup: of the unified hierarchy or, where the machine still keeps its groups in
 * hierarchies of version 1, the deepest of those that engines and systemd always use. */
static __noinline u64 cgroup_node(u64 task)
{
	u64 set = KERNEL_WORD(task, task_struct, cgroups);
	u64 cgroup = KERNEL_WORD(set, css_set, dfl_cgrp);
	u32 level = cgroup_level(cgroup);

	if (level == 0) {
		LOOK_AT_CONTROLLER(memory_cgrp_id);
		LOOK_AT_CONTROLLER(pids_cgrp_id);
		LOOK_AT_CONTROLLER(cpu_cgrp_id);
	}
	return KERNEL_WORD(cgroup, cgroup, kn);
}

static __always_inline struct ef_process_set *set_of_process(u32 tgid)
{
	u32 index = tgid & (EF_PROCESS_SETS - 1);
	return bpf_map_lookup_elem(&processes, &index);
}

/* The way of that owner, NULL: there is none. */
static __always_inline struct ef_known_process *way_of(struct ef_process_set *set, u32 owner)
{
#pragma unroll
	for (int i = 0; i < EF_PROCESS_WAYS; i++)
		if (set->ways[i].owner == owner)
			return &set->ways[i];
	return NULL;
}

/* What was sent of a process that ran under this number, NULL: nothing, or it was forgotten. */
static __always_inline struct ef_known_process *known_process(u32 tgid)
{
	struct ef_process_set *set = set_of_process(tgid);
	return set ? way_of(set, tgid + 1) : NULL;
}

/* Marks the identity as sent; until the record is out the next sample tries again. */
static __always_inline void remember_process(const struct ef_process_id *id)
{
	struct ef_process_set *set = set_of_process(id->tgid);
	struct ef_known_process *way;

	if (!set)
		return;
	way = way_of(set, id->tgid + 1);
	if (!way)
		way = way_of(set, 0);
	if (!way)
		way = &set->ways[(id->start_boottime_ns >> 16) & (EF_PROCESS_WAYS - 1)];
	way->owner = id->tgid + 1;
	way->exec_id = id->exec_id;
	way->start_boottime_ns = id->start_boottime_ns;
}

static __always_inline bool is_known_process(const struct ef_process_id *id)
{
	struct ef_known_process *known = known_process(id->tgid);
	return known && known->exec_id == id->exec_id && known->start_boottime_ns == id->start_boottime_ns;
}

/* Sends the record of the process of `address`, a task; s->sample says who it is, and when. Global, so that it is verified
 * apart from the sampler. */
__noinline int report_process(u64 address)
{
	struct ef_scratch *s = get_scratch();
	struct task_struct *task = (void *)address;
	u64 exe = executable_file(task);

	if (!s)
		return 0;
	struct ef_process *p = &s->record.process;
	p->path_bytes = 0;
	if (exe)
		write_path(PROCESS_NAMES_AT, exe);
	cgroup_into_record(cgroup_node(address));
	p->process = s->sample.process;
	fill_process(p, task, s->sample.ktime_ns, exe);
	u64 bytes = process_record_bytes(p);
	if (bpf_ringbuf_output(&records, p, bytes, BPF_RB_NO_WAKEUP)) {
		count(EF_COUNTER_processes_lost_ring);
		return 0;
	}
	count(EF_COUNTER_processes_reported);
	remember_process(&s->sample.process);
	return 0;
}

/* A process that was sampled runs another program now: tell at once, before /proc changes again. */
SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	struct ef_process_id id = {};

	count(EF_COUNTER_execs);
	read_process_id(task, &id);
	if (!known_process(id.tgid))
		return 0;
	struct ef_scratch *s = take_scratch();
	if (!s)
		return 0;
	s->sample.process = id;
	s->sample.ktime_ns = bpf_ktime_get_ns();
	report_process((u64)task);
	release_scratch(s);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];

	/* the last thread of the process: do_exit() has counted itself out by now */
	if (KERNEL_FIELD(KERNEL_FIELD(task, task_struct, signal), signal_struct, live.counter) != 0)
		return 0;
	u32 tgid = KERNEL_FIELD(task, task_struct, tgid);
	if (config.targets == EF_TARGETS_CHOSEN)
		bpf_map_delete_elem(&targets, &tgid);
	struct ef_known_process *known = known_process(tgid);
	if (!known)
		return 0;
	struct ef_exit event = { .type = EF_RECORD_EXIT, .ktime_ns = bpf_ktime_get_ns() };
	read_process_id(task, &event.process);
	known->owner = 0;
	if (bpf_ringbuf_output(&records, &event, sizeof(event), BPF_RB_NO_WAKEUP))
		count(EF_COUNTER_exits_lost_ring);
	else
		count(EF_COUNTER_exits);
	return 0;
}

/* Attached where some are excluded: until then the process still runs, on its way out. */
SEC("raw_tp/sched_process_free")
int on_task_free(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	u32 tgid = KERNEL_FIELD(task, task_struct, tgid);
	u32 tid = KERNEL_FIELD(task, task_struct, pid);

	if (tgid == tid)
		bpf_map_delete_elem(&targets, &tgid);
	return 0;
}

/* How far up a new process looks for a chosen one. */
#define MAX_ANCESTORS 32

/*
 * Descendants of a chosen process are chosen too. Attached only with a filter, and before user space adds those that
 * exist: a process that it has not come to yet is known by its ancestors when it forks, so that none is left out. Of an
 * excluded process only children are excluded: what has left it, as a container leaves its runtime, is sampled.
 */
SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	u32 child = KERNEL_FIELD(ctx->args[1], task_struct, tgid);
	u32 tgid = KERNEL_FIELD(task, task_struct, tgid);
	u32 one = 1;
	int generations = config.targets == EF_TARGETS_EXCLUDED ? 1 : MAX_ANCESTORS;

	if (tgid == child)
		return 0;
	for (int i = 0; i < generations && tgid != 0 && tgid != config.own_tgid; i++) {
		if (bpf_map_lookup_elem(&targets, &tgid)) {
			if (bpf_map_update_elem(&targets, &child, &one, BPF_ANY))
				count(EF_COUNTER_targets_full);
			return 0;
		}
		task = KERNEL_FIELD(task, task_struct, real_parent);
		tgid = KERNEL_FIELD(task, task_struct, tgid);
	}
	return 0;
}

#endif
