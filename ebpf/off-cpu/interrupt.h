/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Whether an interrupt is being served: what it does has nothing to do with the thread that it came upon. Interrupts have
 * a stack of their own (arch/{x86,arm64}/kernel/irq*.c, where softirqs run too), and the arguments of a tracepoint are on the
 * stack that is in use. On x86 they keep to the thread's own where they came upon its program: then it is in no system call.
 * The count of interrupts would say it as well, but stands elsewhere from kernel to kernel.
 */
#ifndef EF_INTERRUPT_H
#define EF_INTERRUPT_H

#include "../user-regs.h"

/* `ctx`: of a tp_btf program. */
static __always_inline bool in_interrupt(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 stack = KERNEL_WORD(task, task_struct, stack);
	void *spilled = ctx;
	u64 address = 0;

	/* a pointer to the context can't be compared, but be read as a number */
	KERNEL_READ(&address, 8, &spilled);
	if (address - stack >= config.thread_size)
		return 1;
	bool has_program =
		!(KERNEL_FIELD(task, task_struct, flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER));
	return has_program && syscall_of(saved_user_regs(task)) == NO_SYSCALL;
}

#endif
