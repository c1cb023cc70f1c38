/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* One native frame: from its program counter to the table and the rule, and to the registers of its caller. See unwind.h. */
#ifndef EF_UNWIND_FRAME_H
#define EF_UNWIND_FRAME_H

#include "mapping.h"
#include "table.h"
#include "thread-local.h"

/* A frame larger than this is taken for garbage by the frame-pointer fallback. */
#define FRAME_POINTER_REACH (1ULL << 20)

enum step_result { STEP_NEXT = 0, STEP_DONE = 1 };

static __always_inline void fold(struct ef_scratch *s, u64 word)
{
	s->state.hash = fold_word(s->state.hash, word);
}

static __always_inline void push_word(struct ef_scratch *s, u64 word)
{
	u32 at = s->state.words;
	if (at >= EF_MAX_WORDS)
		return;
	s->trace.frames[at] = word;
	s->state.words = at + 1;
	fold(s, word);
}

#define FRAME_WORD(kind, operand) ((u64)(kind) << 56 | ((operand) & ((1ULL << 56) - 1)))

static __always_inline int cut(struct ef_scratch *s, u32 marker)
{
	s->state.marker = marker;
	return STEP_DONE;
}

static __always_inline int find_mapping(struct ef_scratch *s, u64 address)
{
	if (address - s->mappings[0].start < s->mappings[0].length)
		return 0;
	if (address - s->mappings[1].start < s->mappings[1].length)
		return 1;
	if (address - s->mappings[2].start < s->mappings[2].length)
		return 2;
	if (address - s->mappings[3].start < s->mappings[3].length)
		return 3;
	return resolve_mapping(address);
}

/* A part of the stack that is not there now. What it is needed for may be completed later: see deferred.bpf.c. */
static __always_inline int cut_unread(struct ef_scratch *s, u64 address, u32 marker)
{
	s->state.unread = address;
	return cut(s, marker);
}

/* [fp] is the caller's fp, [fp + 8] the return address: trusted only where fp lies a little above the stack
 * pointer and is aligned. Whether the address found is code is checked by the next step: if it is not, the stack ends
 * for the reason for which it was guessed. A root is two zeros, and none is taken for one while a table is to come. */
static __always_inline int step_frame_pointer(struct ef_scratch *s, u32 marker_if_not)
{
	u64 saved[2];

	if (s->state.fp < s->state.sp || s->state.fp - s->state.sp > FRAME_POINTER_REACH || s->state.fp & 7)
		return cut(s, marker_if_not);
	if (USER_READ(saved, 16, s->state.fp))
		return cut_unread(s, s->state.fp, marker_if_not);
	if (!CODE_ADDRESS(saved[1]) && (saved[0] || marker_if_not == EF_MARKER_PENDING))
		return cut(s, marker_if_not);
	s->state.sp = s->state.fp + 16;
	s->state.fp = saved[0];
	s->state.pc = saved[1];
	s->frame_pointer_frames++;
	s->marker_if_guess_fails = marker_if_not;
	if (!FRAME_ENDS_AT_RECORD)
		s->marker_if_sp_unknown = marker_if_not;
	return STEP_NEXT;
}

/* Back to what a signal interrupted: every register is known again and pc is not a return address. */
static __always_inline int step_signal(struct ef_scratch *s)
{
	u64 *r = s->signal_registers;

	if (USER_READ(r, sizeof(s->signal_registers), s->state.sp + SIGNAL_REGISTERS_AT))
		return cut_unread(s, s->state.sp + SIGNAL_REGISTERS_AT, EF_MARKER_STACK_READ);
	copy_signal_registers(s->state.leaf.by_dwarf_number, r);
	s->state.fp = r[SIGNAL_FP];
	s->state.sp = r[SIGNAL_SP];
	s->state.pc = r[SIGNAL_PC];
	s->found_all = 1;
	s->found_callee_saved = 1;
	s->is_return_address = 0;
	s->marker_if_sp_unknown = EF_MARKER_NONE;
	return s->state.pc ? STEP_NEXT : STEP_DONE;
}

/* The value of the register that a CFA counts from. Past the leaf fp, sp and perhaps the callee-saved register are known. */
static __always_inline int base_register(struct ef_scratch *s, u32 number, u64 *value)
{
	if (number == REG_SP)
		*value = s->state.sp;
	else if (number == REG_FP)
		*value = s->state.fp;
	else if (s->is_leaf || (s->knows_callee_saved && number == REG_CALLEE_SAVED))
		*value = s->state.leaf.by_dwarf_number[number & (EF_REGISTERS - 1)];
	else
		return 1;
	return 0;
}

/* Bytes. Each shape has a function of its own, as in vma.h. */
static __noinline u64 vector_bytes_5_16(u64 task)
{
	return KERNEL_FIELD(task, task_struct, thread.vl[0]);
}

static __noinline u64 vector_bytes_5_10(u64 task)
{
	return KERNEL_FIELD(task, task_struct___5_10, thread.sve_vl);
}

/* DWARF's VG: how long the vectors of the sampled thread are, in units of 8 bytes; 0 where there are none. */
static __always_inline u64 vector_granules(void)
{
	u64 task = SAMPLED_TASK();
	bool is_5_16 = bpf_core_field_exists(struct thread_struct, vl);
	return (is_5_16 ? vector_bytes_5_16(task) : vector_bytes_5_10(task)) / 8;
}

/* What *cfa points to, plus `offset`. A stack that nobody has switched from, as OCaml leaves it while it calls back,
 * has a null pointer there. */
static __always_inline int load_cfa(struct ef_scratch *s, u64 *cfa, s64 offset)
{
	u64 base = 0;

	if (*cfa < 4096)
		return EF_MARKER_NO_PROGRESS;
	if (USER_READ(&base, 8, *cfa)) {
		s->state.unread = *cfa;
		return EF_MARKER_STACK_READ;
	}
	*cfa = base + offset;
	return 0;
}

static __always_inline int compute_cfa(struct ef_scratch *s, const struct ef_rule *rule, u64 *cfa)
{
	u64 base = 0;

	if (rule->kind == EF_RULE_PLT) {
		*cfa = s->state.sp + rule->cfa_offset + ((s->state.pc & 15) >= (u32)rule->cfa_offset2 ? 8 : 0);
		return 0;
	}
	if (base_register(s, rule->cfa_reg & ~EF_RULE_INTERRUPTED, &base))
		return EF_MARKER_REGISTER;
	*cfa = base + (s64)rule->cfa_offset;
	if (HAS_VECTOR_LENGTH && rule->kind == EF_RULE_CFA_VG) {
		u64 granules = vector_granules();
		if (!granules)
			return EF_MARKER_REGISTER;
		*cfa += granules * (s64)rule->cfa_offset2;
	}
	if (rule->kind == EF_RULE_CFA_DEREF)
		return load_cfa(s, cfa, rule->cfa_offset2);
	if (rule->kind == EF_RULE_CFA_DEREF_TWICE)
		return load_cfa(s, cfa, (__s16)rule->cfa_offset2) ?: load_cfa(s, cfa, rule->cfa_offset2 >> 16);
	return 0;
}

/* Where the caller's register is saved; sp and fp are still the callee's. */
static __always_inline u64 saved_at(struct ef_scratch *s, u32 kind, s64 offset, u64 cfa)
{
	if (kind == EF_VALUE_FRAME)
		return s->state.fp + offset;
	return (kind == EF_VALUE_STACK ? s->state.sp : cfa) + offset;
}

static __always_inline int restore_fp(struct ef_scratch *s, const struct ef_rule *rule, u64 cfa)
{
	if (rule->fp_kind < EF_VALUE_CFA) {
		if (rule->fp_kind == EF_VALUE_UNDEFINED)
			s->state.fp = 0;
		return 0;
	}
	u64 at = saved_at(s, rule->fp_kind, rule->fp_offset, cfa);
	if (!USER_READ(&s->state.fp, 8, at))
		return 0;
	s->state.unread = at;
	return 1;
}

/* The caller's value, where the rule says it: see enum ef_callee_saved. What has no frame has saved nothing. */
static __always_inline void restore_callee_saved(struct ef_scratch *s, const struct ef_rule *rule, u64 cfa)
{
	s64 at = rule->cfa_offset2;

	if (rule->kind != EF_RULE_CFA)
		return;
	if (!RETURN_ADDRESS_ON_STACK && rule->ra_kind == EF_VALUE_REGISTER && cfa == s->state.sp)
		at = EF_CALLEE_SAVED_SAME;
	if (at == EF_CALLEE_SAVED_UNKNOWN)
		return;
	s->found_callee_saved =
		at == EF_CALLEE_SAVED_SAME ?
			s->knows_callee_saved :
			!USER_READ(&s->state.leaf.by_dwarf_number[REG_CALLEE_SAVED & (EF_REGISTERS - 1)], 8,
				   cfa + at);
}

/*
 * Past a frame without a rule, on arm64: a function that keeps a frame pointer lets it point to where it has saved the
 * caller's, next to the return address, and where that is its own rule says. 1 if it doesn't, and sp can't be known.
 */
static __always_inline int find_sp(struct ef_scratch *s, const struct ef_rule *rule)
{
	u64 sp;

	if ((rule->cfa_reg & ~EF_RULE_INTERRUPTED) != REG_SP)
		return 0;
	if (rule->fp_kind == EF_VALUE_STACK)
		sp = s->state.fp - rule->fp_offset;
	else if (rule->fp_kind == EF_VALUE_CFA && rule->kind == EF_RULE_CFA)
		sp = s->state.fp - rule->fp_offset - rule->cfa_offset;
	else
		return 1;
	if (sp < s->state.sp || sp - s->state.sp > FRAME_POINTER_REACH)
		return 1;
	s->state.sp = sp;
	return 0;
}

static __always_inline bool may_change_stack(const struct ef_rule *rule)
{
	return rule->kind == EF_RULE_FRAME_POINTER ||
	       ((rule->kind == EF_RULE_CFA_DEREF || rule->kind == EF_RULE_CFA_DEREF_TWICE) &&
		rule->cfa_reg & EF_RULE_INTERRUPTED);
}

/* With the return address in a register, as in vfork(); or in a record that the caller has made room for, at the CFA or
 * above it: libffi on arm64. */
static __always_inline bool may_be_empty(const struct ef_rule *rule)
{
	return rule->ra_kind == EF_VALUE_REGISTER ||
	       (!RETURN_ADDRESS_ON_STACK && rule->ra_kind == EF_VALUE_CFA && rule->ra_offset >= 0);
}

static __always_inline int step_rule(struct ef_scratch *s, const struct ef_rule *rule)
{
	u64 cfa = 0, pc = 0;

	if (!FRAME_ENDS_AT_RECORD && s->marker_if_sp_unknown && find_sp(s, rule))
		return cut(s, s->marker_if_sp_unknown);
	int marker = compute_cfa(s, rule, &cfa);
	if (marker)
		return cut(s, marker);
	/* the frame-pointer rule, and a CFA that is loaded, are for code that runs on another stack than its caller, which
	 * may lie below */
	if ((may_be_empty(rule) ? cfa < s->state.sp : cfa <= s->state.sp) && !may_change_stack(rule))
		return cut(s, EF_MARKER_NO_PROGRESS);
	if (rule->ra_kind == EF_VALUE_REGISTER) {
		if (!s->is_leaf)
			return cut(s, EF_MARKER_REGISTER);
		pc = s->state.leaf.by_dwarf_number[rule->ra_offset & (EF_REGISTERS - 1)];
	} else {
		u64 at = saved_at(s, rule->ra_kind, rule->ra_offset, cfa);
		if (USER_READ(&pc, 8, at))
			return cut_unread(s, at, EF_MARKER_STACK_READ);
	}
	if (restore_fp(s, rule, cfa))
		return cut(s, EF_MARKER_STACK_READ);
	restore_callee_saved(s, rule, cfa);
	s->marker_if_sp_unknown = EF_MARKER_NONE;
	s->state.sp = cfa;
	s->state.pc = pc;
	s->is_return_address = !(rule->cfa_reg & EF_RULE_INTERRUPTED);
	return STEP_NEXT;
}

/* What the scheduler's stack was left for; the pc that is saved lies behind a call. */
static __always_inline int step_goroutine(struct ef_scratch *s, const struct ef_rule *rule)
{
	u64 g = 0, saved[2];

	if (USER_READ(&g, 8, thread_pointer() + (s64)rule->cfa_offset) || USER_READ(&g, 8, g + rule->ra_offset) ||
	    USER_READ(&g, 8, g + (s64)rule->cfa_offset2))
		return cut(s, EF_MARKER_REGISTER);
	/* between two goroutines the scheduler works for none */
	if (!g)
		return STEP_DONE;
	if (USER_READ(saved, 16, g + rule->ra_offset + 8) || USER_READ(&s->state.fp, 8, g + rule->fp_offset) ||
	    !saved[0])
		return cut(s, EF_MARKER_REGISTER);
	s->state.sp = saved[0];
	s->state.pc = saved[1];
	return STEP_NEXT;
}

static __always_inline int apply_rule(struct ef_scratch *s)
{
	switch (s->rule.kind) {
	case EF_RULE_STOP:
		return STEP_DONE;
	case EF_RULE_SIGNAL:
		return step_signal(s);
	case EF_RULE_GOROUTINE:
		return step_goroutine(s, &s->rule);
	case EF_RULE_UNKNOWN:
		return cut(s, EF_MARKER_NO_RULE);
	default:
		return step_rule(s, &s->rule);
	}
}

/*
 * A caller in code that no file backs: small stubs return right after their call, and what they undo then says where
 * the return address is (RETURN_ADDRESS_ON_STACK; else they keep a frame pointer to find it by).
 */
static __always_inline int step_epilogue(struct ef_scratch *s)
{
	u64 code = 0, sp = s->state.sp, bytes = 0;
	bool pops_fp = 0;

	if (!RETURN_ADDRESS_ON_STACK || s->is_leaf || USER_READ(&code, 8, s->state.pc) ||
	    !is_epilogue(code, &bytes, &pops_fp))
		return 1;
	if (pops_fp && USER_READ(&s->state.fp, 8, sp))
		return 1;
	sp += bytes;
	if (USER_READ(&s->state.pc, 8, sp))
		return 1;
	s->state.sp = sp + 8;
	return 0;
}

/* From a function that has returned: everything is as its caller has it. */
static __always_inline int step_return(struct ef_scratch *s)
{
	s->state.pc = s->returned_to;
	s->returned_to = 0;
	s->found_callee_saved = 1;
	return STEP_NEXT;
}

static __always_inline int step_from(struct ef_scratch *s, u32 slot)
{
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];

	if (m->key || m->is_jit) {
		if (m->file.state != EF_FILE_TABLE)
			return step_frame_pointer(s, m->file.state == EF_FILE_PENDING ? EF_MARKER_PENDING :
											EF_MARKER_NO_TABLE);
		bool is_jit = m->is_jit;
		bool has_rule = !find_rule(slot);
		/* a JIT registers a part of its code at most: the rest is memory like any other */
		if (has_rule && !(is_jit && s->rule.kind == EF_RULE_UNKNOWN))
			return apply_rule(s);
		if (!is_jit)
			return step_frame_pointer(s, EF_MARKER_NO_RULE);
	}
	if (!step_epilogue(s))
		return STEP_NEXT;
	return step_frame_pointer(s, EF_MARKER_ANON);
}

#endif
