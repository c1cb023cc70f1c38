/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Before a new trace: names of those of its functions that may be freed before user space could read them. */
#ifndef EF_FUNCTIONS_H
#define EF_FUNCTIONS_H

#include "php/functions.h"

/* At s->next_word, which goes to the next frame. Returns 1 at the end. Global, so that it is verified once. */
__noinline int send_next_function(void)
{
	struct ef_scratch *s = config.runtimes ? get_scratch() : NULL;
	if (!s)
		return 1;
	u32 at = s->next_word;
	if (at >= s->state.words)
		return 1;
	u32 kind = trace_word(s, at) >> 56;
	s->next_word = at + (kind == EF_FRAME_FILE || kind > EF_FRAME_MARKER ? 2 : 1);
	if (kind == EF_FRAME_PHP)
		send_php_function(at);
	return 0;
}

__noinline int send_next_functions(void)
{
	for (u32 i = 0; i < FRAMES_AT_A_TIME; i++)
		if (send_next_function())
			return 1;
	return 0;
}

static __always_inline void send_functions(struct ef_scratch *s)
{
	if (!HAS_RUNTIME(PHP) || !(s->begun_runtimes & 1U << EF_RUNTIME_PHP))
		return;
	s->next_word = s->state.kernel_frames;
	for (u32 i = 0; i < EF_MAX_USER_FRAMES / FRAMES_AT_A_TIME + 1; i++)
		if (send_next_functions())
			return;
}

#endif
