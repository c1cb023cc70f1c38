/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The registers with which the sampled task will go on in user space. */
#ifndef EF_USER_REGS_H
#define EF_USER_REGS_H

#include "maps.h"

#define PF_IO_WORKER 0x00000010
#define PF_USER_WORKER 0x00004000
#define PF_KTHREAD 0x00200000
/* The code segment of 32-bit programs: arch/x86/include/asm/segment.h */
#define USER32_CS 0x23

static __always_inline bool is_user_mode(const struct ef_x86_regs *regs)
{
	return (regs->cs & 3) == 3;
}

static __always_inline void set_leaf(struct ef_scratch *s, const struct ef_x86_regs *regs)
{
	u64 *leaf = s->leaf.by_dwarf_number;
	leaf[0] = regs->rax;
	leaf[1] = regs->rdx;
	leaf[2] = regs->rcx;
	leaf[3] = regs->rbx;
	leaf[4] = regs->rsi;
	leaf[5] = regs->rdi;
	leaf[6] = regs->rbp;
	leaf[7] = regs->rsp;
	leaf[8] = regs->r8;
	leaf[9] = regs->r9;
	leaf[10] = regs->r10;
	leaf[11] = regs->r11;
	leaf[12] = regs->r12;
	leaf[13] = regs->r13;
	leaf[14] = regs->r14;
	leaf[15] = regs->r15;
	s->fp = regs->rbp;
	s->sp = regs->rsp;
	s->pc = regs->rip;
}

/* The address of the pt_regs that the kernel saved at the last entry from user space. */
static __always_inline u64 saved_user_regs(struct task_struct *task)
{
	if (config.has_task_pt_regs)
		return (u64)bpf_task_pt_regs(bpf_get_current_task_btf());
	return (u64)BPF_CORE_READ(task, stack) + config.thread_size - config.user_regs_from_stack_top;
}

/* Fills leaf, pc, sp and fp. Returns 0, or the counter of why there are none. */
static __always_inline u32 load_user_regs(struct bpf_perf_event_data *ctx, struct ef_scratch *s,
					  struct task_struct *task, u64 *cs)
{
	if (is_user_mode(&ctx->regs)) {
		set_leaf(s, &ctx->regs);
		*cs = ctx->regs.cs;
		return 0;
	}
	struct ef_x86_regs *regs = &s->user_regs;
	if (BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return EF_COUNTER_user_none;
	if (KERNEL_READ(regs, sizeof(*regs), saved_user_regs(task)))
		return EF_COUNTER_user_regs_failed;
	/* exec and exit run with registers that belong to no user code */
	if (!is_user_mode(regs) || !regs->rip)
		return EF_COUNTER_user_leaf_unmapped;
	set_leaf(s, regs);
	*cs = regs->cs;
	return 0;
}

#endif
