/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * arm64. Register numbers: AADWARF64, section 4.1. The return address comes in x30; a function that calls others saves
 * it next to the caller's frame pointer, which is the pair that x29 then points to (AAPCS64, section 6.4.6), and may
 * sign it first: then its upper bits are not part of the address (CODE_ADDRESS).
 */
#ifndef EF_ARCH_ARM64_H
#define EF_ARCH_ARM64_H

#include "kernel.h"

#define EF_REGISTERS 32 /* x0..x30 sp */
#define REG_FP 29
#define REG_SP 31
/* The register of enum ef_callee_saved: no CFA counts from another than fp and sp, but BEAM has the Erlang stack in it */
#define REG_CALLEE_SAVED 20
#define REG_V8_FUNCTION 1
#define REG_RETURN 30
#define REG_PHP_INSTRUCTION 28
/* HotSpot's interpreter: the called Method and the bytecode pointer */
#define REG_HOTSPOT_METHOD 12
#define REG_HOTSPOT_BCP 22
#define HOTSPOT_INTERPRETED_WORDS 9
#define HOTSPOT_CODE_BYTES 288 /* from pc - 64 */
/* Frames are multiples of 16 bytes. */
#define HOTSPOT_CANDIDATES 16
#define HOTSPOT_CANDIDATE_BYTES 16
#define REG_LUAJIT_BASE 19
#define REG_LUAJIT_INSTRUCTION 21
#define REG_GO_GOROUTINE 28
/* Where a large function has saved its caller's registers: behind the pair of its frame, which x29 points to */
#define LUA_SAVED(s, cfa) ((s)->state.fp + 16)
#define LUA_SAVED_WORDS 10
#define LUA_CALLEE_WORDS 0
/* What V8's entry from C++ saves before the pair of its frame: d8 to d15 and x19 to x28. */
#define V8_ENTRY_SAVES 144
#define HAS_DOTNET 0
#define RETURN_ADDRESS_ON_STACK 0
/* that of SVE is the thread's own: DWARF's register VG, which frames are measured by that hold vectors */
#define HAS_VECTOR_LENGTH 1
/* the pair that x29 points to lies anywhere in its frame, which so may end far above it */
#define FRAME_ENDS_AT_RECORD 0

/* 4, 16 or 64 KiB: the kernel's choice */
#define PAGE_SHIFT config.page_shift
#define THREAD_POINTER_MEMBER thread.uw.tp_value
/* The C library's thread ends at the thread pointer, so that nothing in it is at a known distance: glibc's has 1,792 to
 * 1,984 bytes, from version to version, and its keys are looked for (thread-local.h). pthread_self() is where it begins, less
 * than THREAD_BYTES before. */
#define MUSL_KEYS(tp) ((tp)-88)
#define MODULE_VECTOR(tp, is_musl) ((tp) - ((is_musl) ? 8 : 0))
#define THREAD_BYTES 4096
#define USER_ADDRESS_END (1ULL << 48)

/* UAPI, stable: arch/arm64/include/uapi/asm/ptrace.h, struct user_pt_regs */
struct ef_user_regs {
	u64 x[31], sp, pc, pstate;
};

/* struct rt_sigframe: siginfo (128), ucontext up to uc_mcontext (176), its fault_address (8), then x0..x30, sp, pc
 * (arch/arm64/include/uapi/asm/{ucontext,sigcontext}.h) */
#define SIGNAL_REGISTERS_AT 312
#define SIGNAL_REGISTERS 33
#define SIGNAL_FP 29
#define SIGNAL_SP 31
#define SIGNAL_PC 32

/* By their DWARF numbers, the program counter's behind them. */
#define FOR_EACH_USER_REGISTER(do_with) \
	do_with(0, x[0]); \
	do_with(1, x[1]); \
	do_with(2, x[2]); \
	do_with(3, x[3]); \
	do_with(4, x[4]); \
	do_with(5, x[5]); \
	do_with(6, x[6]); \
	do_with(7, x[7]); \
	do_with(8, x[8]); \
	do_with(9, x[9]); \
	do_with(10, x[10]); \
	do_with(11, x[11]); \
	do_with(12, x[12]); \
	do_with(13, x[13]); \
	do_with(14, x[14]); \
	do_with(15, x[15]); \
	do_with(16, x[16]); \
	do_with(17, x[17]); \
	do_with(18, x[18]); \
	do_with(19, x[19]); \
	do_with(20, x[20]); \
	do_with(21, x[21]); \
	do_with(22, x[22]); \
	do_with(23, x[23]); \
	do_with(24, x[24]); \
	do_with(25, x[25]); \
	do_with(26, x[26]); \
	do_with(27, x[27]); \
	do_with(28, x[28]); \
	do_with(29, x[29]); \
	do_with(30, x[30]); \
	do_with(31, sp); \
	do_with(32, pc)

#define PROCESSOR_MODE(regs) ((regs)->pstate)
#define KERNEL_MODE 5 /* PSR_MODE_EL1h */

/* PSR_MODE_EL0t, of 64-bit and of 32-bit programs */
static __always_inline bool is_user_mode(u64 mode)
{
	return (mode & 15) == 0;
}

static __always_inline bool is_32_bit(u64 mode)
{
	return mode & 0x10; /* PSR_MODE32_BIT */
}

#define USER_PC(regs) ((regs)->pc)
#define USER_FP(regs) ((regs)->x[REG_FP])
#define USER_SP(regs) ((regs)->sp)
/* At a function's entry: AAPCS64, section 6.8, and Go's ABIInternal. */
#define USER_ARGUMENT_0(regs) ((regs)->x[0])
#define USER_ARGUMENT_1(regs) ((regs)->x[1])
#define USER_ARGUMENT_2(regs) ((regs)->x[2])
#define USER_ARGUMENT_3(regs) ((regs)->x[3])
#define USER_ARGUMENT_4(regs) ((regs)->x[4])
#define USER_ARGUMENT_5(regs) ((regs)->x[5])
#define GO_ARGUMENT_0(regs) ((regs)->x[0])
/* Numbers of system calls, and their fourth argument: include/uapi/asm-generic/unistd.h */
#define SYSCALL_MMAP 222
#define SYSCALL_BRK 214
#define SYSCALL_MREMAP 216
#define SYSCALL_ARGUMENT_3(regs) ((regs)->x[3])
/* Behind its return: what it returns, and what the stack pointer was at the entry. */
#define USER_RESULT(regs) ((regs)->x[0])
#define SP_AT_ENTRY(sp) (sp)

/* In a system call; other ways into the kernel leave no number. `saved_at`: of the kernel's pt_regs. */
static __always_inline bool is_behind_syscall(const struct ef_user_regs *regs, u64 saved_at)
{
	s32 number = -1;

	(void)regs;
	return !KERNEL_READ(&number, 4, saved_at + FIELD_OFFSET(pt_regs, syscallno)) && number != -1;
}

#define NO_SYSCALL 0xffffffff
/* Of a 32-bit program, which has other numbers. */
#define OTHER_SYSCALL 0xfffffffe

/* The number of the system call that a thread is in. `saved_at`: of the kernel's pt_regs. */
static __always_inline u32 syscall_of(u64 saved_at)
{
	u64 mode = 0;
	s32 number = -1;

	KERNEL_READ(&mode, 8, saved_at + offsetof(struct ef_user_regs, pstate));
	if (KERNEL_READ(&number, 4, saved_at + FIELD_OFFSET(pt_regs, syscallno)))
		return OTHER_SYSCALL;
	if (number == -1)
		return NO_SYSCALL;
	return is_32_bit(mode) ? OTHER_SYSCALL : (u32)number;
}

static __always_inline void copy_registers(u64 *leaf, const struct ef_user_regs *regs)
{
#pragma unroll
	for (int i = 0; i < 31; i++)
		leaf[i] = regs->x[i];
	leaf[REG_SP] = regs->sp;
}

static __always_inline void copy_signal_registers(u64 *leaf, const u64 *r)
{
#pragma unroll
	for (int i = 0; i < EF_REGISTERS; i++)
		leaf[i] = r[i];
}

static __always_inline bool is_epilogue(u64 code, u64 *bytes, bool *pops_fp)
{
	(void)code, (void)bytes, (void)pops_fp;
	return 0;
}

/* without the signature of pointer authentication */
#define CODE_ADDRESS(word) ((word)&config.code_address_mask)

#endif
