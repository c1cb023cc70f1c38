/* Hand-written functions with call frame information of their own: a pushed stack, a CFA in another register, a stack
 * of their own. Each calls what its second argument points to: void by_push(uint64_t n, void (*then)(uint64_t)). */
	.text
	.globl	by_push, by_register, by_other_stack, by_state
	.type	by_push, @function
by_push:
	.cfi_startproc
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	subq	$1000, %rsp
	.cfi_adjust_cfa_offset 1000
	call	*%rsi
	addq	$1000, %rsp
	.cfi_adjust_cfa_offset -1000
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	by_push, .-by_push

	.type	by_state, @function
by_state:
	.cfi_startproc
	pushq	%r12
	.cfi_def_cfa_offset 16
	.cfi_offset %r12, -16
	.cfi_remember_state
	testq	%rdi, %rdi
	jnz	1f
	popq	%r12
	.cfi_restore %r12
	.cfi_def_cfa_offset 8
	ret
	/* offsets in full: clang 14 counts adjustments from before the state that it restored */
1:	.cfi_restore_state
	subq	$16, %rsp
	.cfi_def_cfa_offset 32
	call	*%rsi
	addq	$16, %rsp
	.cfi_def_cfa_offset 16
	popq	%r12
	.cfi_restore %r12
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	by_state, .-by_state

/* The old stack pointer lies on the new stack: CFA = *(rsp + 0) + 8. */
	.type	by_other_stack, @function
by_other_stack:
	.cfi_startproc
	movq	%rsp, %rax
	.cfi_def_cfa_register %rax
	leaq	other_stack_end(%rip), %rsp
	pushq	%rbp
	pushq	%rax
	/* def_cfa_expression: breg7(rsp)+0, deref, plus_uconst 8 */
	.cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 8
	call	*%rsi
	popq	%rsp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	by_other_stack, .-by_other_stack

	.type	by_register, @function
by_register:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq	%rdi, %rsp
	andq	$-64, %rsp
	movq	$4000, %rdi
	call	*%rsi
	movq	%rbp, %rsp
	.cfi_def_cfa_register %rsp
	popq	%rbp
	.cfi_restore %rbp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	by_register, .-by_register

	.bss
	.balign	16
	.space	65536
other_stack_end:
	.space	16
	.section	.note.GNU-stack,"",@progbits
