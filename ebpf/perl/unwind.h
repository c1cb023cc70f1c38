/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The Perl unwinder. Functions, evals and blocks that are being executed are contexts, arrays of which are linked:
 *
 *   interpreter -> PERL_SI (stack info): contexts, the innermost last -> the PERL_SI before -> ... -> that of the program
 *
 * A new PERL_SI begins where the interpreter itself calls Perl: sort, tied variables, overloading, destructors, signal handlers,
 * BEGIN blocks. Perl_runops_standard runs operations one after another, and functions of Perl that call one another; where C
 * calls back there is another native frame of it. The native unwinder asks here at each. The contexts that this run of it
 * executes go into the trace before (leaf side of) its native frame. It began with its base: a function that returns to no operation,
 * since C has called it, or the block of a sort. A PERL_SI need not have a base (Perl called C there), nor need it have just one.
 *
 * A frame is a function, with the statement (COP: file and line) that it executes. That of the innermost one is PL_curcop; each
 * context keeps the statement from which it was entered.
 *
 * What contexts alone don't say:
 *
 *   docatch    an eval in a function that C has called is executed by a runops of its own, which goes on after the eval until that function
 *              returns: docatch and perhaps its caller are all that is between the two, and the outer one has no contexts left
 *   sort {f()} f returns to no operation either, where it is the last of the block, or of code in a regular expression: no base, if what
 *              called its runops is neither call_sv nor amagic_call
 *   between    comparisons the base is there, but nothing runs: PL_op is null
 */
#ifndef EF_PERL_H
#define EF_PERL_H

#include "../cookie.h"
#include "../unwind-frame.h"

/* cop.h: CXt_, CXp_ and PERLSI_ */
#define PERL_TYPE_MASK 15
#define PERL_NULL 0
#define PERL_SUB 9
#define PERL_FORMAT 10
#define PERL_EVAL 11
#define PERL_DEFER 13
#define PERL_MULTICALL 0x10
#define PERL_RE 0x40
#define PERL_RE_FAKE 0x80
#define PERL_BLOCK_OR_TRY 0xc0
#define PERL_STACK_MAIN 1
#define PERL_STACK_SORT 3
#define PERL_STACK_MULTICALL 10
#define PERL_STACK_LAST 15
/* Words of a context: blk_oldcop, retop */
#define PERL_CONTEXT_STATEMENT 2
#define PERL_CONTEXT_RETURN 6
/* sv.h, cv.h: SvTYPE of a function and a symbol; CVf_NAMED, CVf_LEXICAL */
#define PERL_TYPE(head) ((head) >> 32 & 31)
#define PERL_PVGV 9
#define PERL_PVCV 13
#define PERL_NAMED 0x8000
#define PERL_LEXICAL 0x10000
#define PERL_BODY_GV 0x38
#define PERL_BODY_NAME 0x20
#define PERL_STATEMENT_LINE 0x24
#define PERL_MAX_LINE (1U << EF_PERL_LINE_BITS)
#define PERL_MAX_INDEX (1 << 24)
/* Contexts that are looked at in a sample: functions, their loops and blocks */
#define PERL_MAX_CONTEXTS 4096

enum perl_result {
	PERL_NEXT = 0,
	PERL_RUN_OVER = 1,
	PERL_END = 2, /* no context is left, or what follows can't be trusted */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, struct ef_perl);
} perl_files SEC(".maps");

#define PERL_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_perl_read_failed)
#define PERL_WORD(address) user_word((address), EF_COUNTER_perl_read_failed)

static __always_inline int load_perl(struct ef_perl_state *w, u64 key)
{
	struct ef_perl *file = bpf_map_lookup_elem(&perl_files, &key);
	if (!file)
		return 1;
	w->file = *file;
	w->key = key;
	w->has_begun = w->has_run = w->is_within = 0;
	w->is_called = w->between = 0;
	w->left = PERL_MAX_CONTEXTS;
	w->stack = 0;
	return 0;
}

/* Of what its members are counted from; 0: the thread has none. */
static __always_inline u64 perl_interpreter(const struct ef_perl *file, u64 delta)
{
	u64 at = file->at - delta;
	u32 key = 0;

	if (file->access == EF_PERL_GLOBALS)
		return -delta;
	if (file->is_slot)
		at = PERL_WORD(at);
	if (file->access == EF_PERL_POINTER)
		return PERL_WORD(at);
	if (PERL_READ(&key, 4, at) || key > 4095)
		return 0;
	return thread_specific(thread_pointer(), key, file->is_musl, EF_COUNTER_perl_read_failed);
}

/* Makes the contexts of a PERL_SI the next ones. */
static __always_inline int enter_stack(struct ef_perl_state *w, u64 stack)
{
	s32 type = 0;

	w->stack = 0;
	w->is_within = 0;
	if (stack < 4096 || stack & 7 || stack >= USER_ADDRESS_END ||
	    PERL_READ(w->words, sizeof(w->words), stack))
		return PERL_END;
	w->index = (s32)w->words[4];
	w->contexts = w->words[1];
	type = w->file.stack_type == 40 ? (s32)w->words[5] : (s32)(w->words[5] >> 32);
	if (type < -1 || type > PERL_STACK_LAST || w->index < -1 || w->index > PERL_MAX_INDEX) {
		count(EF_COUNTER_perl_bad_context);
		return PERL_END;
	}
	w->stack_type = type;
	w->stack = stack;
	return PERL_NEXT;
}

/* Reads the next context, which stays the next one. */
static __always_inline int read_context(struct ef_perl_state *w)
{
	u64 at = w->contexts + w->index * w->file.context_bytes;

	return PERL_READ(w->context, 80, at);
}

/* Between two comparisons of a sort, and two calls of a function by C that keeps it ready, its context is there but not executed. */
static __always_inline void drop_idle_base(struct ef_perl_state *w, u32 flag)
{
	if (w->index || read_context(w))
		return;
	u32 type = (u8)w->context[0];
	if (type & flag || ((type & PERL_TYPE_MASK) == PERL_NULL && w->stack_type == PERL_STACK_SORT))
		w->index = -1;
}

/* Finds the thread's contexts. Global, so that it is verified once. */
__noinline int begin_perl(u64 delta)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PERL);
	if (!s)
		return 0;
	struct ef_perl_state *w = &s->runtimes.perl;
	u64 interpreter = perl_interpreter(&w->file, delta), operation = 0;

	w->has_begun = 1;
	w->stack = 0;
	if (!interpreter || PERL_READ(&operation, 8, interpreter + w->file.operation))
		return 0;
	w->statement = PERL_WORD(interpreter + w->file.statement);
	w->compiling = interpreter + w->file.compiling;
	if (enter_stack(w, PERL_WORD(interpreter + w->file.stack_info)))
		return 0;
	if (!operation)
		drop_idle_base(w, PERL_MULTICALL);
	return 0;
}

static __always_inline u64 perl_cookie(u64 first, u64 second)
{
	return cookie_of_bits(5, first, second);
}

static __always_inline u64 perl_name(u32 kind, u64 address, u64 cookie)
{
	return cookie << (EF_PERL_ADDRESS_BITS + 3) | (u64)kind << EF_PERL_ADDRESS_BITS | address >> 3;
}

static __always_inline void push_perl(struct ef_scratch *s, struct ef_perl_state *w, u64 name)
{
	u64 statement = w->statement;
	u32 line = 0;

	if (statement < 4096 || statement >= USER_ADDRESS_END ||
	    PERL_READ(&line, 4, statement + PERL_STATEMENT_LINE))
		statement = 0;
	if (line >= PERL_MAX_LINE)
		line = 0;
	push_word(s, FRAME_WORD(EF_FRAME_PERL, name));
	push_word(s, (statement >> 3) << EF_PERL_LINE_BITS | line);
	/* addresses mean something in this process only */
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
	w->statement = w->context[PERL_CONTEXT_STATEMENT];
}

/* A frame that has no name of its own. */
static __always_inline void push_unnamed(struct ef_scratch *s, struct ef_perl_state *w, u32 kind)
{
	bool is_compiled = w->statement - w->compiling < w->file.compiling_bytes;

	push_perl(s, w, perl_name(kind, is_compiled << 3, 0));
}

static __always_inline u64 symbol_name(struct ef_perl_state *w, u64 gv)
{
	if (gv < 4096 || gv >= USER_ADDRESS_END || PERL_READ(w->value, sizeof(w->value), gv) ||
	    PERL_TYPE(w->value[1]) != PERL_PVGV ||
	    PERL_READ(w->name, sizeof(w->name), w->value[0] + PERL_BODY_NAME))
		return 0;
	return perl_name(EF_PERL_GV, gv, perl_cookie(w->name[0], w->name[1]));
}

/* What the function of w->context is called by; 0: it is none. */
static __always_inline u64 function_name(struct ef_perl_state *w)
{
	u64 cv = w->context[w->file.context_cv / 8 & (PERL_CONTEXT_WORDS - 1)];

	if (cv < 4096 || cv & 7 || cv >= USER_ADDRESS_END || PERL_READ(w->value, sizeof(w->value), cv) ||
	    PERL_TYPE(w->value[1]) != PERL_PVCV ||
	    PERL_READ(w->body, sizeof(w->body), w->value[0] + PERL_BODY_GV))
		return 0;
	u64 name = w->body[0];
	u32 flags = w->body[4] >> 32;
	if (!(flags & PERL_NAMED))
		return symbol_name(w, name);
	if (name >= USER_ADDRESS_END)
		return 0;
	if (!(flags & PERL_LEXICAL))
		return perl_name(EF_PERL_CV, cv, perl_cookie(name, 0));
	return PERL_READ(w->name, 8, name) ? 0 : perl_name(EF_PERL_LEXICAL, name, perl_cookie(w->name[0], 0));
}

/* A function, of which there may be one that is only said to be called: code in a regular expression is its own function's. */
static __always_inline int take_function(struct ef_scratch *s, struct ef_perl_state *w, u32 type)
{
	if (!(type & PERL_RE_FAKE) || (type & PERL_TYPE_MASK) == PERL_FORMAT) {
		u64 name = function_name(w);
		if (!name) {
			count(EF_COUNTER_perl_not_function);
			return PERL_NEXT;
		}
		push_perl(s, w, name);
	}
	return w->context[PERL_CONTEXT_RETURN] ? PERL_NEXT : PERL_RUN_OVER;
}

/* The code of a file or a text; a block is not a function. */
static __always_inline int take_eval(struct ef_scratch *s, struct ef_perl_state *w, u32 type)
{
	if (type & PERL_BLOCK_OR_TRY)
		return PERL_NEXT;
	bool is_file = w->context[w->file.context_name / 8 & (PERL_CONTEXT_WORDS - 1)] != 0;
	push_unnamed(s, w, is_file ? EF_PERL_REQUIRED : EF_PERL_EVAL);
	return w->context[PERL_CONTEXT_RETURN] ? PERL_NEXT : PERL_RUN_OVER;
}

/* No context of the PERL_SI is left. */
static __always_inline int leave_stack(struct ef_scratch *s, struct ef_perl_state *w)
{
	if (w->stack_type != PERL_STACK_MAIN)
		return enter_stack(w, w->words[2]);
	push_unnamed(s, w, EF_PERL_MAIN);
	return PERL_END;
}

/* Takes the next context. Global, so that it is verified once. */
__noinline int take_perl_context(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PERL);
	if (!s)
		return PERL_END;
	struct ef_perl_state *w = &s->runtimes.perl;
	int result = PERL_NEXT;

	if (!w->stack)
		return PERL_END;
	if (!w->left) {
		count(EF_COUNTER_perl_contexts_left);
		return PERL_END;
	}
	w->left--;
	if (w->index < 0)
		return leave_stack(s, w);
	if (read_context(w))
		return PERL_END;
	w->index--;
	u32 type = (u8)w->context[0];
	switch (type & PERL_TYPE_MASK) {
	case PERL_SUB:
	case PERL_FORMAT:
		result = take_function(s, w, type);
		break;
	case PERL_EVAL:
		result = take_eval(s, w, type);
		break;
	case PERL_NULL:
		result = w->stack_type == PERL_STACK_SORT ? PERL_RUN_OVER : PERL_NEXT;
		break;
	case PERL_DEFER:
		result = PERL_RUN_OVER;
		break;
	}
	w->is_within = result == PERL_RUN_OVER && w->index >= 0;
	return result;
}

/* As unwind_steps(). */
__noinline int take_perl_contexts(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PERL);
	if (!s)
		return PERL_END;
	for (u32 i = 0; i < FRAMES_AT_A_TIME; i++) {
		if (s->state.user_frames >= config.max_user_frames)
			return PERL_END;
		int result = take_perl_context();
		if (result != PERL_NEXT)
			return result;
	}
	return PERL_NEXT;
}

static __always_inline void take_perl_run(struct ef_perl_state *w)
{
	for (u32 i = 0; i < PERL_MAX_CONTEXTS / FRAMES_AT_A_TIME + 1; i++) {
		int result = take_perl_contexts();
		if (result == PERL_RUN_OVER)
			return;
		if (result == PERL_END)
			break;
	}
	w->stack = 0;
}

/* A function that returns to no operation began no run, if runops was not called for it. */
static __always_inline bool was_no_base(const struct ef_perl_state *w)
{
	return w->is_within && !w->is_called &&
	       (w->stack_type == PERL_STACK_SORT || w->stack_type == PERL_STACK_MULTICALL);
}

/* docatch, or what has called that alone, is between this runops and the one before. */
static __always_inline bool is_docatch(const struct ef_scratch *s, const struct ef_perl_state *w)
{
	u32 between = s->state.user_frames - w->frames - 1;

	return w->has_run && !w->is_called && between == w->between && (between == 1 || between == 2);
}

/* A native frame of runops: takes what it runs. */
static __always_inline void pass_runops(struct ef_scratch *s, struct ef_perl_state *w)
{
	if (!is_docatch(s, w) && w->stack) {
		if (was_no_base(w))
			w->index = -1;
		take_perl_run(w);
	}
	w->has_run = 1;
	w->frames = s->state.user_frames;
	w->is_called = w->between = 0;
}

/* A native frame of Perl's file that is not runops. */
static __always_inline void pass_function(struct ef_scratch *s, struct ef_perl_state *w, bool calls)
{
	w->between++;
	if (calls && s->state.user_frames - w->frames == 1)
		w->is_called = 1;
}

/* Before and after code in a regular expression its context is there but not executed. */
static __always_inline void pass_regexec(struct ef_perl_state *w)
{
	if (!w->has_run && w->stack && w->stack_type == PERL_STACK_MULTICALL)
		drop_idle_base(w, PERL_RE);
}

/* The outermost native frame of a program, while it runs and while it is being compiled: what is left. */
static __always_inline void pass_program(struct ef_perl_state *w)
{
	for (u32 i = 0; i < 8 && w->stack; i++)
		take_perl_run(w);
}

static __always_inline bool is_perl_function(const struct ef_perl *file, u32 function, u64 offset)
{
	return offset - file->functions[function].start < file->functions[function].length;
}

/* Pushes the Perl frames that belong to the native frame at s->state.pc, which follows. */
__noinline int unwind_perl(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PERL);
	if (!s)
		return 0;
	struct ef_perl_state *w = &s->runtimes.perl;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];

	if (begins_in_sample(s, EF_RUNTIME_PERL))
		w->key = 0;
	if (w->key != m->key && load_perl(w, m->key))
		return 0;
	if (!w->has_begun)
		begin_perl(m->delta);
	u64 offset = s->table_offset;
	if (is_perl_function(&w->file, EF_PERL_RUNOPS, offset) ||
	    is_perl_function(&w->file, EF_PERL_RUNOPS_DEBUG, offset)) {
		pass_runops(s, w);
		return 0;
	}
	pass_function(s, w,
		      is_perl_function(&w->file, EF_PERL_CALL, offset) ||
			      is_perl_function(&w->file, EF_PERL_OVERLOAD, offset));
	if (is_perl_function(&w->file, EF_PERL_REGEXEC, offset))
		pass_regexec(w);
	else if (is_perl_function(&w->file, EF_PERL_RUN, offset) ||
		 is_perl_function(&w->file, EF_PERL_PARSE, offset))
		pass_program(w);
	return 0;
}

#endif
