/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The .NET unwinder (CoreCLR). The runtime keeps a map of all code that is its own, which this walks: sections of
 *
 *   code heaps    methods that the JIT has compiled. A nibble map leads to where a method begins, in front of which stands
 *                 the address of its header: MethodDesc, and a RUNTIME_FUNCTION for the method and each of its funclets
 *   images        methods that were compiled ahead ("ReadyToRun"), in a file or in a copy of it in memory; the image has a
 *                 sorted table of RUNTIME_FUNCTIONs
 *   stubs         small pieces of code between methods, which have no frame
 *
 * A RUNTIME_FUNCTION leads to an UNWIND_INFO: frames.h. Offsets come from user space, once a process: see attach.h and
 * agent/interpreters/dotnet.
 */
#ifndef EF_DOTNET_H
#define EF_DOTNET_H

#include "sections.h"

#if HAS_DOTNET

#include "frames.h"

/* A method's own RUNTIME_FUNCTION and those of its handlers */
#define DOTNET_MAX_FUNCLETS 16

static __always_inline void push_dotnet(struct ef_scratch *s, u32 code, u64 address, u32 offset, u64 cookie)
{
	push_word(s, FRAME_WORD(EF_FRAME_DOTNET, (u64)code << 48 | (address & ((1ULL << 48) - 1))));
	push_word(s, (u64)offset << 32 | (u32)(cookie >> EF_DOTNET_COOKIE_SHIFT));
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
}

/* An assembly that is unloaded leaves its place to the next one, which may put a method of its own where the old one was: names tell
 * them apart. Of a method that belongs to none that may be, the MethodDesc is enough. Global, so that it is verified once. */
__noinline u64 dotnet_cookie(u64 method)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(DOTNET);
	if (!s)
		return 0;
	struct ef_dotnet_state *w = &s->runtimes.dotnet;
	u64 index = DOTNET_WORD(method) >> (w->clr.chunk_index & 7) * 8 & 255;
	u64 chunk = method - index * w->clr.method_unit - w->clr.chunk_bytes;
	u64 module = DOTNET_WORD(DOTNET_WORD(chunk + w->clr.chunk_table) + w->clr.table_module);
	u64 name = DOTNET_WORD(module + w->clr.simple_name), hash = hash_of_2_words(method, name);

	if (DOTNET_READ(w->names, sizeof(w->names), name - EF_DOTNET_NAME_BEFORE))
		return method;
#pragma unroll
	for (int i = 0; i < EF_DOTNET_NAME_WORDS; i++)
		hash = fold_word(hash, w->names[i]);
	return hash;
}

/* Finds the method of an address in a code heap, and its RUNTIME_FUNCTION. 1: it has none; 2: it is a stub. Global, so
 * that it is verified once. */
__noinline int find_jitted(u64 address)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(DOTNET);
	if (!s)
		return 1;
	struct ef_dotnet_state *w = &s->runtimes.dotnet;
	u64 start = find_in_nibbles(w, address - w->map_base);
	u32 functions = 0, relative = address - w->begin;

	if (start == -1ULL) {
		count(EF_COUNTER_dotnet_no_method);
		return 1;
	}
	w->code = w->map_base + start;
	if (DOTNET_READ(&w->header, 8, w->code - 8))
		return 1;
	if (w->header <= DOTNET_LAST_STUB_KIND)
		return 2;
	if (DOTNET_READ(&w->cookie, 8, w->header + w->clr.method_desc) ||
	    DOTNET_READ(&functions, 4, w->header + w->clr.unwind_count))
		return 1;
	if (w->is_collectible)
		w->cookie = dotnet_cookie(w->cookie);
	for (u32 i = 0; i < DOTNET_MAX_FUNCLETS; i++) {
		if (i >= functions || read_function(w, w->header + w->clr.unwind_infos, i))
			break;
		if (relative >= w->function.begin && relative < w->function.end)
			return 0;
	}
	count(EF_COUNTER_dotnet_no_function);
	return 1;
}

/* A part of the table that the process has not come to yet: user space finds the method by any address of its. */
static __always_inline int skip_unwind_info(struct ef_scratch *s, struct ef_dotnet_state *w, u64 address,
					    u64 unread)
{
	note_unread(s, unread);
	w->is_unwind_unread = 1;
	w->function.begin = address - w->begin;
	w->code = address;
	w->cookie = w->module;
	return 0;
}

/* Finds the RUNTIME_FUNCTION of an address in an image; 1 where there is none. Global, so that it is verified once. */
__noinline int find_precompiled(u64 address)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(DOTNET);
	if (!s)
		return 1;
	struct ef_dotnet_state *w = &s->runtimes.dotnet;
	u32 relative = address - w->begin, low = 0, high = w->function_count;

	for (u32 i = 0; i < DOTNET_SEARCH_STEPS && low < high; i++) {
		u32 middle = low + (high - low) / 2, begin = 0;
		u64 at = w->functions + (u64)middle * sizeof(w->function);
		if (USER_READ(&begin, 4, at))
			return skip_unwind_info(s, w, address, at);
		if (begin <= relative)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low) {
		count(EF_COUNTER_dotnet_no_function);
		return 1;
	}
	u64 found = w->functions + (u64)(low - 1) * sizeof(w->function);
	if (USER_READ(&w->function, sizeof(w->function), found))
		return skip_unwind_info(s, w, address, found);
	w->code = w->begin + w->function.begin;
	w->cookie = w->module;
	return 0;
}

/* Code between methods, which has no frame: only a leaf may be there. */
static __always_inline int step_stub(struct ef_scratch *s, struct ef_dotnet_state *w)
{
	u64 address = s->state.pc;

	w->sp = s->state.sp;
	w->fp = s->state.fp;
	if (!s->is_leaf || take_return_address(s, w))
		return 0;
	push_dotnet(s, EF_DOTNET_STUB, address, 0, 0);
	return 1;
}

/* What else the runtime writes into anonymous memory, such as the write barrier: a leaf that methods call. */
static __always_inline int step_helper(struct ef_scratch *s, struct ef_dotnet_state *w,
				       const struct ef_mapping *m)
{
	if (m->key || !s->is_leaf || USER_READ(&w->pair[1], 8, s->state.sp))
		return 0;
	u64 kind = find_dotnet_section(w->pair[1]);
	return kind == SECTION_JIT || kind == SECTION_PRECOMPILED ? step_stub(s, w) : 0;
}

static __always_inline int unwind_method(struct ef_scratch *s, struct ef_dotnet_state *w, u32 kind, u64 address)
{
	w->is_unwind_unread = 0;
	int missing = kind == SECTION_JIT ? find_jitted(address) : find_precompiled(address);

	if (missing == 2)
		return step_stub(s, w);
	if (missing)
		return 0;
	u32 offset = address - w->code;
	u64 code = w->code, cookie = w->cookie;
	if (step_dotnet_function(address - w->begin - w->function.begin)) {
		count(EF_COUNTER_dotnet_no_caller);
		return 0;
	}
	push_dotnet(s, kind == SECTION_JIT ? EF_DOTNET_JITTED : EF_DOTNET_PRECOMPILED, code, offset, cookie);
	return 1;
}

/* Pushes the frame of a method in place of the native one and goes to its caller. Returns 1, or 0 where the frame is none,
 * and nothing has changed. Global, so that it is verified once. */
__noinline int unwind_dotnet(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(DOTNET);
	if (!s)
		return 0;
	struct ef_dotnet_state *w = &s->runtimes.dotnet;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	u64 address = s->state.pc - s->is_return_address;
	int done;

	if (begins_in_sample(s, EF_RUNTIME_DOTNET))
		w->is_looked_up = 0;
	if (!w->is_looked_up)
		look_clr_up(s, w, m);
	if (!w->clr.attachment.is_attached)
		return 0;
	/* the runtime's own code is native; a single-file application has its images behind it */
	if (m->key && m->file.state == EF_FILE_TABLE && address + m->delta < w->clr.code_end)
		return 0;
	u32 kind = find_dotnet_section(address);
	if (kind == SECTION_NONE)
		done = step_helper(s, w, m);
	else if (kind == SECTION_STUBS)
		done = step_stub(s, w);
	else
		done = unwind_method(s, w, kind, address);
	if (done)
		s->state.runtime_file = w->clr.attachment.file_key;
	return done;
}

#else

__noinline int unwind_dotnet(u32 slot)
{
	OPAQUE(slot);
	return 0;
}

#endif
#endif
