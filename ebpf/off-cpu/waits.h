/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a thread waits for as it leaves its CPU: by its state, by whether the kernel says that it waits for a device, and
 * by the system call that it is in. No system call: the processor has come upon a page that is not there.
 */
#ifndef EF_WAITS_H
#define EF_WAITS_H

#include "../user-regs.h"

/* include/linux/sched.h, the same since 4.14 */
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED_OR_TRACED 0xc
#define TASK_DEAD 0x80
#define TASK_WAKING 0x200

/* arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h (arm64) */
#if defined(__TARGET_ARCH_x86)
#define EITHER(x86, arm64) x86
#else
#define EITHER(x86, arm64) arm64
#endif

static __always_inline bool waits_for_lock(u32 call)
{
	switch (call) {
	case EITHER(202, 98):  /* futex */
	case 449:              /* futex_waitv */
	case 455:              /* futex_wait */
	case 456:              /* futex_requeue */
	case EITHER(73, 32):   /* flock */
	case EITHER(72, 25):   /* fcntl */
	case EITHER(65, 193):  /* semop */
	case EITHER(220, 192): /* semtimedop */
		return 1;
	}
	return 0;
}

/* Of any of several files, or of one that is none of a file system. */
static __always_inline bool waits_for_network(u32 call)
{
	switch (call) {
#if defined(__TARGET_ARCH_x86)
	case 7:   /* poll */
	case 23:  /* select */
	case 232: /* epoll_wait */
#endif
	case EITHER(271, 73):  /* ppoll */
	case EITHER(270, 72):  /* pselect6 */
	case EITHER(281, 22):  /* epoll_pwait */
	case 441:              /* epoll_pwait2 */
	case 426:              /* io_uring_enter */
	case EITHER(43, 202):  /* accept */
	case EITHER(288, 242): /* accept4 */
	case EITHER(42, 203):  /* connect */
	case EITHER(44, 206):  /* sendto */
	case EITHER(45, 207):  /* recvfrom */
	case EITHER(46, 211):  /* sendmsg */
	case EITHER(47, 212):  /* recvmsg */
	case EITHER(299, 243): /* recvmmsg */
	case EITHER(307, 269): /* sendmmsg */
	case EITHER(70, 188):  /* msgrcv */
	case EITHER(243, 183): /* mq_timedreceive */
		return 1;
	}
	return 0;
}

/* Of a file system's file or of another: whoever waits for a device can't be interrupted. */
static __always_inline bool reads_or_writes(u32 call)
{
	switch (call) {
	case EITHER(0, 63):   /* read */
	case EITHER(1, 64):   /* write */
	case EITHER(19, 65):  /* readv */
	case EITHER(20, 66):  /* writev */
	case EITHER(40, 71):  /* sendfile */
	case EITHER(275, 76): /* splice */
	case EITHER(276, 77): /* tee */
		return 1;
	}
	return 0;
}

static __always_inline bool syncs(u32 call)
{
	switch (call) {
	case EITHER(74, 82):   /* fsync */
	case EITHER(75, 83):   /* fdatasync */
	case EITHER(162, 81):  /* sync */
	case EITHER(306, 267): /* syncfs */
	case EITHER(277, 84):  /* sync_file_range */
	case EITHER(26, 227):  /* msync */
	case EITHER(17, 67):   /* pread64 */
	case EITHER(18, 68):   /* pwrite64 */
	case EITHER(295, 69):  /* preadv */
	case EITHER(296, 70):  /* pwritev */
	case EITHER(208, 4):   /* io_getevents */
		return 1;
	}
	return 0;
}

static __always_inline enum ef_thread_state wait_in_syscall(u32 call, u64 state, bool in_iowait)
{
	if (waits_for_lock(call))
		return EF_THREAD_LOCK;
	if (waits_for_network(call))
		return EF_THREAD_NETWORK;
	if (in_iowait || syncs(call))
		return EF_THREAD_DISK;
	if (reads_or_writes(call))
		return state & TASK_UNINTERRUPTIBLE ? EF_THREAD_DISK : EF_THREAD_NETWORK;
	/* nanosleep, clock_nanosleep */
	return call == EITHER(35, 101) || call == EITHER(230, 115) ? EF_THREAD_SLEEP : EF_THREAD_OTHER;
}

/* Why a thread that is not ready leaves its CPU. */
static __always_inline enum ef_thread_state reason_of_wait(struct task_struct *task, u64 state)
{
	bool in_iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);

	if (task->flags & (PF_IO_WORKER | PF_USER_WORKER))
		return in_iowait ? EF_THREAD_DISK : EF_THREAD_OTHER;
	u32 call = syscall_of(saved_user_regs(task));
	if (call == NO_SYSCALL)
		return state & TASK_STOPPED_OR_TRACED ? EF_THREAD_OTHER : EF_THREAD_PAGE_FAULT;
	return wait_in_syscall(call, state, in_iowait);
}

#endif
