/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Functions with a return probe, of ours or of anybody: the kernel has put the address of its trampoline in place of their return
 * address, and keeps that in a list of the thread's, the innermost first (kernel/events/uprobes.c).
 */
#ifndef EF_RETURN_PROBES_H
#define EF_RETURN_PROBES_H

#include "memory.h"
#include "user-memory.h"

/* MAX_URETPROBE_DEPTH */
#define MAX_RETURN_PROBES 64

/* Notes the trampoline's address; 0: the thread is in no such function. Global, so that it is verified once. */
__noinline int note_trampoline(void)
{
	struct ef_scratch *s = get_scratch();
	if (!s || !bpf_core_field_exists(struct task_struct, utask))
		return 0;
	u64 of_thread = KERNEL_WORD(SAMPLED_TASK(), task_struct, utask);
	if (!of_thread || !KERNEL_WORD(of_thread, uprobe_task, return_instances))
		return 0;
	u64 area = KERNEL_WORD(s->state.mm, mm_struct, uprobes_state.xol_area);
	s->trampoline = area ? KERNEL_WORD(area, xol_area, vaddr) : 0;
	return 0;
}

/* The return address of the function that began with that stack pointer, 0: unknown. Global, so that the loop is verified once. */
__noinline u64 kept_return_address(u64 sp_at_entry)
{
	u64 of_thread = KERNEL_WORD(SAMPLED_TASK(), task_struct, utask);
	u64 instance = KERNEL_WORD(of_thread, uprobe_task, return_instances);

	for (u32 i = 0; i < MAX_RETURN_PROBES && instance; i++) {
		if (KERNEL_WORD(instance, return_instance, stack) == sp_at_entry)
			return KERNEL_WORD(instance, return_instance, orig_ret_vaddr);
		instance = KERNEL_WORD(instance, return_instance, next);
	}
	return 0;
}

/* Where a frame has returned to the trampoline: on to where it would have. */
static __always_inline void pass_trampoline(struct ef_scratch *s)
{
	u64 pc = kept_return_address(SP_AT_ENTRY(s->state.sp));

	if (pc)
		s->state.pc = CODE_ADDRESS(pc);
}

#endif
