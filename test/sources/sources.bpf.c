/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * A second source of samples, for interrupted-sources.test.ts: the system call
 * with which a program marks a place. A tick may interrupt it anywhere; so may
 * a timer, whose event is a source of its own in the same memory.
 */
#include "../../ebpf/source.h"

#define MARK 0x6d61726b /* fd of a lseek() that marks a place; its offset is the value */
#define ORIGIN_MARK EF_ORIGIN_MAX
#define ORIGIN_TIMER (EF_ORIGIN_MAX + 1)

#if defined(__TARGET_ARCH_x86)
#define FIRST_ARGUMENT(regs) ((regs)->rdi)
#define SECOND_ARGUMENT(regs) ((regs)->rsi)
#else
#define FIRST_ARGUMENT(regs) ((regs)->x[0])
#define SECOND_ARGUMENT(regs) ((regs)->x[1])
#endif

SEC("raw_tp/sys_enter")
int on_mark(struct bpf_raw_tracepoint_args *ctx)
{
	const struct ef_user_regs *regs = (void *)ctx->args[0];
	u64 fd = 0, value = 0;

	KERNEL_READ(&fd, 8, &FIRST_ARGUMENT(regs));
	if (fd != MARK)
		return 0;
	KERNEL_READ(&value, 8, &SECOND_ARGUMENT(regs));
	struct ef_scratch *s = begin_sample(ORIGIN_MARK, value);
	if (!s)
		return 0;
	take_stacks(ctx, s, NULL);
	finish_sample(s);
	return 0;
}

SEC("raw_tp/hrtimer_expire_entry")
int on_timer(struct bpf_raw_tracepoint_args *ctx)
{
	struct ef_scratch *s = begin_sample(ORIGIN_TIMER, 1);
	if (!s)
		return 0;
	take_stacks(ctx, s, NULL);
	finish_sample(s);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
