/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The registers with which the sampled task will go on in user space. */
#ifndef EF_USER_REGS_H
#define EF_USER_REGS_H

#include "memory.h"
#include "user-memory.h"

struct bpf_perf_event_data {
	struct ef_user_regs regs;
	u64 sample_period;
	u64 addr;
};

#define PF_IO_WORKER 0x00000010
#define PF_USER_WORKER 0x00004000
#define PF_KTHREAD 0x00200000

static __always_inline void set_leaf(struct ef_scratch *s, const struct ef_user_regs *regs)
{
	copy_registers(s->state.leaf.by_dwarf_number, regs);
	s->state.fp = USER_FP(regs);
	s->state.sp = USER_SP(regs);
	s->state.pc = USER_PC(regs);
	s->state.is_behind_syscall = 0;
}

/* The address of the pt_regs that the kernel saved at the last entry from user space. */
static __always_inline u64 saved_user_regs(struct task_struct *task)
{
	if (config.has_task_pt_regs)
		return (u64)SAVED_REGISTERS(task);
	return KERNEL_WORD(task, task_struct, stack) + config.thread_size - config.user_regs_from_stack_top;
}

/* `interrupted`: what the event came upon, NULL: the kernel. Fills leaf, pc, sp and fp; `mode`: the processor's, in user
 * space. Returns 0, or the counter of why there are none. */
static __always_inline u32 load_user_regs(struct ef_scratch *s, const struct ef_user_regs *interrupted,
					  struct task_struct *task, u64 *mode)
{
	*mode = *(const volatile u64 *)&s->state.mode;
	if (interrupted && is_user_mode(*mode)) {
		set_leaf(s, interrupted);
		/* or clang joins the end of this with the same below, and reads by a pointer that may be into ctx */
		asm volatile("" ::: "memory");
		return 0;
	}
	struct ef_user_regs *regs = &s->user_regs;
	if (KERNEL_FIELD(task, task_struct, flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return EF_COUNTER_user_none;
	u64 at = saved_user_regs(task);
	if (KERNEL_READ(regs, sizeof(*regs), at))
		return EF_COUNTER_user_regs_failed;
	/* exec and exit run with registers that belong to no user code */
	*mode = PROCESSOR_MODE(regs);
	if (!is_user_mode(*mode) || !USER_PC(regs))
		return EF_COUNTER_user_leaf_unmapped;
	set_leaf(s, regs);
	s->state.is_behind_syscall = is_behind_syscall(regs, at);
	return 0;
}

#endif
