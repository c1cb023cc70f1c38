/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Stacks of which a part is not in memory: its page was never touched, or went to swap or back to its file. In the
 * timer's interrupt nobody can wait for a page. The sampler jumps here then; what it needs to begin again is put aside,
 * and the thread does the rest itself on its way back to user space (bpf_task_work, Linux 6.18), where it may wait: it
 * touches the page, as the program is about to, and unwinds with the registers of the sample, which are still its own.
 *
 * An object of its own, since no older kernel takes a program with a callback, and loaded when a stack was cut for want
 * of a page: docs/decisions/bpf/stack-page-faults.md.
 */
/* The verifier allows 8 frames of calls; the callback and unwind_again() are two of them here. */
#define UNWIND_STEPS_LINKAGE static __always_inline
#include "process.h"
#include "send.h"
#include "user-regs.h"

/* Words kept if the page never arrives */
#define KEPT_WORDS 256
/* Pages that are read at a time: a stack goes on in the pages above. */
#define PAGES 16
#define ROUNDS 16

#define VM_READ 0x1
#define VM_UFFD_MISSING 0x200
#define VM_PFNMAP 0x400
#define VM_UFFD_WP 0x1000
#define VM_IO 0x4000
#define PF_EXITING 0x4

struct ef_deferred {
	struct bpf_task_work work;
	u32 is_taken; /* set by the CPU that it belongs to, cleared by the thread */
	u32 reserved;
	u64 unread_end; /* of the mapping that state.unread lies in */
	struct ef_unwind state;
	struct ef_sample sample;
	u64 frames[KEPT_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EF_DEFERRED_PER_CPU);
	__type(key, u32);
	__type(value, struct ef_deferred);
} deferred SEC(".maps");

/* libbpf takes no incomplete type for the kernel's complete one */
struct bpf_map {
	u32 key_size;
} __attribute__((preserve_access_index));
typedef int task_work_callback(struct bpf_map *map, void *key, void *value);
/* 6.18 and 6.19 want an argument that the verifier fills in, and the kernel knows the function by another name. */
#ifdef EF_TASK_WORK_IMPL
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work, void *map,
					      task_work_callback *callback, void *aux) __ksym;
#define SCHEDULE(task, work, map, callback) bpf_task_work_schedule_resume_impl(task, work, map, callback, NULL)
#else
extern int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *work, void *map,
					 task_work_callback *callback) __ksym;
#define SCHEDULE(task, work, map, callback) bpf_task_work_schedule_resume(task, work, map, callback)
#endif
extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;

/* True where touching the page does no more than wait for it: devices, and memory that another process hands out, are left
 * alone. */
static __always_inline bool can_touch(struct ef_scratch *s)
{
	if (read_vma(s->state.mm, s->state.unread, &s->vma, s->maple_node) != VMA_OK)
		return 0;
	return (s->vma.flags & VM_READ) && !(s->vma.flags & (VM_IO | VM_PFNMAP | VM_UFFD_MISSING | VM_UFFD_WP));
}

/* 0 if the page that was missing is there now, and what follows it as far as it could be had. */
static __always_inline int touch(const struct ef_deferred *d)
{
	u64 at = d->state.unread;
	u8 byte;

	for (int i = 0; i < PAGES; i++) {
		if (i && at >= d->unread_end)
			break;
		if (bpf_copy_from_user(&byte, 1, (const void *)at))
			return i ? 0 : 1;
		at = (at & ~(PAGE_BYTES - 1)) + PAGE_BYTES;
	}
	return 0;
}

static __always_inline void restore(struct ef_scratch *s, const struct ef_deferred *d)
{
	s->sample = d->sample;
	s->state = d->state;
	begin_stack(s);
	copy_value(s->trace.frames, d->frames);
	begin_with_kernel_frames(s, d->state.kernel_frames);
}

/* The stack as far as the sampler came. */
static __always_inline void restore_cut(struct ef_scratch *s, const struct ef_deferred *d)
{
	if (d->state.words > d->state.kernel_frames)
		s->state = d->state;
	s->state.marker = d->state.marker;
	s->is_unwound = 1;
}

/* After an exec, or past the end of its memory, the thread has nothing to unwind. */
static __always_inline bool is_too_late(const struct ef_deferred *d)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct ef_process_id now;

	read_process_id(task, &now);
	return KERNEL_WORD(task, task_struct, mm) != d->state.mm || now.exec_id != d->sample.process.exec_id;
}

/* Unwinds once more. Returns 1 when the sample is out, 0 if another page is to be touched, which is never so if `is_last`. */
__noinline int unwind_again(u32 index, u32 is_last)
{
	struct ef_scratch *s = get_scratch();
	struct ef_deferred *d = bpf_map_lookup_elem(&deferred, &index);

	if (!s || !d)
		return 1;
	restore(s, d);
	if (is_too_late(d)) {
		restore_cut(s, d);
		count(EF_COUNTER_stacks_too_late);
	} else {
		note_trampoline();
		unwind_user(s);
		if (s->state.unread && !is_last && s->state.unread != d->state.unread && can_touch(s)) {
			d->state.unread = s->state.unread;
			d->unread_end = s->vma.end;
			return 0;
		}
		count(s->state.unread ? EF_COUNTER_stacks_incomplete : EF_COUNTER_stacks_completed);
	}
	finish_sample(s);
	return 1;
}

/* Runs in the sampled thread on its way to user space. */
static int complete(struct bpf_map *map, void *key, void *value)
{
	struct ef_deferred *d = value;
	u32 index = *(u32 *)key;

	(void)map;
	for (u32 round = 1; round <= ROUNDS; round++) {
		u32 is_last = touch(d) || round == ROUNDS;
		/* the memory to unwind in is that of the CPU: nobody else gets there before the sample is out */
		bpf_preempt_disable();
		int is_out = unwind_again(index, is_last);
		bpf_preempt_enable();
		if (is_out)
			break;
	}
	d->is_taken = 0;
	return 0;
}

/* The first free place of this CPU. Threads that are in the kernel may stay there for days: they get half of the places at
 * most. */
static __always_inline struct ef_deferred *find_place(struct ef_scratch *s)
{
	u32 first = s->sample.cpu * EF_DEFERRED_PER_CPU,
	    places = in_kernel(s) ? EF_DEFERRED_PER_CPU / 2 : EF_DEFERRED_PER_CPU;

	for (u32 i = 0; i < EF_DEFERRED_PER_CPU; i++) {
		u32 index = first + i;
		struct ef_deferred *d = bpf_map_lookup_elem(&deferred, &index);
		if (i >= places || !d)
			return NULL;
		if (!d->is_taken)
			return d;
	}
	return NULL;
}

static __always_inline void put_aside(struct ef_scratch *s, struct ef_deferred *d)
{
	d->sample = s->sample;
	d->state = s->state;
	if (d->state.words > KEPT_WORDS)
		d->state.words = d->state.kernel_frames;
	d->unread_end = s->vma.end;
	copy_part(d->frames, sizeof(d->frames), s->trace.frames, sizeof(d->frames), 0);
}

static __always_inline bool defer_stack(struct bpf_perf_event_data *ctx, struct ef_scratch *s)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 mode;

	if (task->flags & PF_EXITING || !can_touch(s))
		return 0;
	struct ef_deferred *d = find_place(s);
	if (!d) {
		count(EF_COUNTER_stacks_not_deferred);
		return 0;
	}
	/* unwinding has used them up */
	if (load_user_regs(s, &ctx->regs, task, &mode))
		return 0;
	put_aside(s, d);
	d->is_taken = 1;
	if (!SCHEDULE(task, &d->work, &deferred, complete)) {
		count(EF_COUNTER_stacks_deferred);
		return 1;
	}
	d->is_taken = 0;
	count(EF_COUNTER_stacks_not_deferred);
	return 0;
}

/* Goes on in the memory of the tick that it is part of. */
SEC("perf_event")
int defer(struct bpf_perf_event_data *ctx)
{
	struct ef_scratch *s = scratch_of(EF_CONTEXT_TICK);

	if (!s)
		return 0;
	if (defer_stack(ctx, s))
		release_scratch(s);
	else
		finish_sample(s);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
