/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* x86-64. Register numbers: System V ABI, AMD64 supplement, figure 3.36. */
#ifndef EF_ARCH_X86_H
#define EF_ARCH_X86_H

#include "kernel.h"

#define EF_REGISTERS 16 /* rax rdx rcx rbx rsi rdi rbp rsp r8..r15 */
#define REG_FP 6
#define REG_SP 7
/* The register of enum ef_callee_saved */
#define REG_CALLEE_SAVED 3 /* rbx */
/* In which V8 passes the function that is called, and its code: see v8.h */
#define REG_V8_FUNCTION 5 /* rdi */
#define V8_ENTRY_SAVES 0  /* behind its frame */
#define HAS_DOTNET 1
/* HotSpot's interpreter: the called Method, the bytecode pointer (between calls: the caller's stack pointer), and the
 * return address while a frame is made. See hotspot/unwind.h */
#define REG_HOTSPOT_METHOD 3 /* rbx */
#define REG_HOTSPOT_BCP 13   /* r13 */
#define REG_HOTSPOT_CALLER 0 /* rax */
#define HOTSPOT_INTERPRETED_WORDS 8
#define HOTSPOT_CODE_BYTES 24 /* from pc - 8 */
/* Return addresses are looked for in so many slots, and so far apart. */
#define HOTSPOT_CANDIDATES 4
#define HOTSPOT_CANDIDATE_BYTES 8
/* The instruction that PHP's execute_ex runs, in builds of gcc (ZEND_VM_IP_GLOBAL_REG) */
#define REG_PHP_INSTRUCTION 15
/* BASE and PC of LuaJIT's interpreter */
#define REG_LUAJIT_BASE 1        /* rdx */
#define REG_LUAJIT_INSTRUCTION 3 /* rbx */
#define REG_GO_GOROUTINE 14      /* r14 */
/* Where a large function has saved its caller's registers: behind the return address, by all compilers */
#define LUA_SAVED(s, cfa) ((cfa)-56)
#define LUA_SAVED_WORDS 6
#define LUA_CALLEE_WORDS 6
/* The link register is a stack slot here. */
#define RETURN_ADDRESS_ON_STACK 1
#define HAS_VECTOR_LENGTH 0
#define FRAME_ENDS_AT_RECORD 1

#define PAGE_SHIFT 12
/* Member of task_struct in which the kernel keeps the user's thread pointer. */
#define THREAD_POINTER_MEMBER thread.fsbase
/* Where in the C library's thread, which begins at the thread pointer, glibc has its table of blocks of pthread keys,
 * musl its keys, and both their vector of modules; pthread_self() is the thread pointer. */
#define GLIBC_KEYS(tp, failed) ((tp) + 0x510)
#define MUSL_KEYS(tp) ((tp) + 0x80)
#define MODULE_VECTOR(tp, is_musl) ((tp) + 8)
#define THREAD_BYTES 1
/* The upper half is the kernel's. */
#define USER_ADDRESS_END (1ULL << 47)

/* UAPI, stable: arch/x86/include/uapi/asm/ptrace.h */
struct ef_user_regs {
	u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, eflags,
		rsp, ss;
};

/* struct rt_sigframe: the ucontext's general registers (arch/x86/include/uapi/asm/sigcontext.h) */
#define SIGNAL_REGISTERS_AT 40
#define SIGNAL_REGISTERS 17 /* r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip */
#define SIGNAL_FP 10
#define SIGNAL_SP 15
#define SIGNAL_PC 16

/* By their DWARF numbers, the program counter's behind them. */
#define FOR_EACH_USER_REGISTER(do_with) \
	do_with(0, rax); \
	do_with(1, rdx); \
	do_with(2, rcx); \
	do_with(3, rbx); \
	do_with(4, rsi); \
	do_with(5, rdi); \
	do_with(6, rbp); \
	do_with(7, rsp); \
	do_with(8, r8); \
	do_with(9, r9); \
	do_with(10, r10); \
	do_with(11, r11); \
	do_with(12, r12); \
	do_with(13, r13); \
	do_with(14, r14); \
	do_with(15, r15); \
	do_with(16, rip)

#define PROCESSOR_MODE(regs) ((regs)->cs)
#define KERNEL_MODE 0x10 /* __KERNEL_CS */

static __always_inline bool is_user_mode(u64 mode)
{
	return (mode & 3) == 3;
}

static __always_inline bool is_32_bit(u64 mode)
{
	return mode == 0x23; /* USER32_CS: arch/x86/include/asm/segment.h */
}

#define USER_PC(regs) ((regs)->rip)
#define USER_FP(regs) ((regs)->rbp)
#define USER_SP(regs) ((regs)->rsp)
/* At a function's entry: System V ABI, section 3.2.3, and Go's ABIInternal. */
#define USER_ARGUMENT_0(regs) ((regs)->rdi)
#define USER_ARGUMENT_1(regs) ((regs)->rsi)
#define USER_ARGUMENT_2(regs) ((regs)->rdx)
#define USER_ARGUMENT_3(regs) ((regs)->rcx)
#define USER_ARGUMENT_4(regs) ((regs)->r8)
#define USER_ARGUMENT_5(regs) ((regs)->r9)
#define GO_ARGUMENT_0(regs) ((regs)->rax)
/* Numbers of system calls, and their fourth argument: arch/x86/entry/syscalls/syscall_64.tbl, entry_64.S */
#define SYSCALL_MMAP 9
#define SYSCALL_BRK 12
#define SYSCALL_MREMAP 25
#define SYSCALL_ARGUMENT_3(regs) ((regs)->r10)
/* Behind its return: what it returns, and what the stack pointer was at the entry. */
#define USER_RESULT(regs) ((regs)->rax)
#define SP_AT_ENTRY(sp) ((sp)-8)

/* In a system call: "syscall" leaves the address behind itself in rcx too, and other ways into the kernel no number. */
static __always_inline bool is_behind_syscall(const struct ef_user_regs *regs, u64 saved_at)
{
	(void)saved_at;
	return regs->rcx == regs->rip && regs->orig_rax != (u64)-1;
}

#define NO_SYSCALL 0xffffffff
/* Of a 32-bit program, which has other numbers. */
#define OTHER_SYSCALL 0xfffffffe

/* The number of the system call that a thread is in. `saved_at`: of the kernel's pt_regs. */
static __always_inline u32 syscall_of(u64 saved_at)
{
	/* orig_rax, rip, cs */
	u64 words[3] = {};

	if (KERNEL_READ(words, sizeof(words), saved_at + offsetof(struct ef_user_regs, orig_rax)))
		return OTHER_SYSCALL;
	if (words[0] == (u64)-1)
		return NO_SYSCALL;
	return is_32_bit(words[2]) ? OTHER_SYSCALL : (u32)words[0];
}

static __always_inline void copy_registers(u64 *leaf, const struct ef_user_regs *regs)
{
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
}

static __always_inline void copy_signal_registers(u64 *leaf, const u64 *r)
{
	leaf[0] = r[13];
	leaf[1] = r[12];
	leaf[2] = r[14];
	leaf[3] = r[11];
	leaf[4] = r[9];
	leaf[5] = r[8];
	leaf[6] = r[10];
	leaf[7] = r[15];
	for (int i = 0; i < 8; i++)
		leaf[8 + i] = r[i];
}

/*
 * Whether code behind a call goes back to the caller at once, after taking `bytes` from the stack, of which the frame
 * pointer may be the first eight. CPython's perf trampoline is "sub $8,%rsp; call *%rcx; add $8,%rsp; ret", in later
 * versions "push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret" (Python/asm_trampoline.S).
 */
static __always_inline bool is_epilogue(u64 code, u64 *bytes, bool *pops_fp)
{
	if ((code & 0xff00ffffffULL) == 0xc300c48348ULL) { /* add $n,%rsp; ret */
		*bytes = code >> 24 & 0x7f;
		return 1;
	}
	*pops_fp = 1;
	*bytes = 8;
	return (code & 0xffff) == 0xc35d; /* pop %rbp; ret */
}

/* What a return address is but for bits that are not part of it. */
#define CODE_ADDRESS(word) (word)

#endif
