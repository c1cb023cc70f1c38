/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* x86-64: the stack pointer is Erlang's in code of modules, that of the scheduler's thread in C. */
#ifndef EF_BEAM_CODE_X86_H
#define EF_BEAM_CODE_X86_H

#include "modules.h"

/* Return addresses are on the stack, as soon as there are such. */
#define BEAM_HAS_LINK 0
/* Words of the stack that code which all modules share may have there, and whose return addresses are not aligned */
#define BEAM_LOOSE_WORDS 4
/* C's stack ends a little below the scheduler's registers */
#define BEAM_THREAD_STACK (1U << 16)
/* Of the call before a return address */
#define BEAM_CALL_BYTES 5
/* sub $size,%rsp: of one byte, of four; add $size,%rsp */
#define BEAM_SUB_8 0xec8348
#define BEAM_SUB_32 0xec8148
#define BEAM_ADD_8 0xc48348
#define BEAM_ADD_32 0xc48148
/* mov stop(%r13),%rax, or to any other register */
#define BEAM_READS_STACK (0x458b49 | (u32)BEAM_PROCESS_STACK << 24)
#define BEAM_ANY_REGISTER 0xffc7fffb

static __always_inline bool is_on_way_to_shared(struct ef_scratch *s, struct ef_beam_state *w)
{
	(void)s, (void)w;
	return 0;
}

/* Where the code behind a call of C, or the leaf that runs there, takes the Erlang stack from again: the process, or
 * mov %rbp,%rsp. 0: it is not known. What asks for the next process, mov %rax,%r13, has it all from there. */
static __always_inline u64 stack_after_call(struct ef_scratch *s, struct ef_beam_state *w, u64 stop)
{
	u32 code = 0;

	if (BEAM_READ(w->code, BEAM_CODE_BYTES, s->state.pc))
		return 0;
	if (s->is_return_address && w->code[0] == 0x49 && w->code[1] == 0x89 && w->code[2] == 0xc5) {
		w->is_waiting = 1;
		return stop;
	}
	for (u32 i = 0; i < BEAM_CODE_BYTES; i++) {
		code = code >> 8 | (u32)w->code[i] << 24;
		if ((code & BEAM_ANY_REGISTER) == BEAM_READS_STACK)
			return stop;
		if ((code & 0xffffff) == 0xec8948)
			return s->state.fp;
	}
	return 0;
}

static __always_inline u64 beam_stack(struct ef_scratch *s, struct ef_beam_state *w, u64 registers, u64 stop)
{
	if (s->is_leaf && registers - s->state.sp > BEAM_THREAD_STACK)
		return s->state.sp;
	return stack_after_call(s, w, stop);
}

/* Is it the first byte of what leaves straight code: call, jmp, jmp, ret? Operands may look like one: nothing is known then. */
static __always_inline bool leaves_straight_code(u32 byte)
{
	return byte == 0xe8 || byte == 0xe9 || byte == 0xeb || byte == 0xc3;
}

/* Bytes that the code in w->code has made room for when it ends; 0: it is not known. */
static __always_inline u32 room_made(struct ef_beam_state *w)
{
	u32 size = 0;

	for (u32 i = 0; i < BEAM_CODE_BYTES; i++) {
		u32 code = w->code[i] | w->code[i + 1] << 8 | w->code[i + 2] << 16;
		if (code == BEAM_SUB_8)
			size = w->code[i + 3];
		else if (code == BEAM_SUB_32)
			size = w->code[i + 3] | w->code[i + 4] << 8;
		else if (code == BEAM_ADD_8 || code == BEAM_ADD_32 || (code & 0xf0ff) == 0xe0ff ||
			 leaves_straight_code(code & 0xff))
			size = 0;
	}
	return size;
}

#endif
