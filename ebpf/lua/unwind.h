/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The unwinder of Lua 5.1 to 5.5. A thread of Lua (coroutine) is a lua_State; the functions that it is executing are a list of CallInfo:
 *
 *   lua_State -> innermost CallInfo -> the one before -> ...     each: function, instruction, and from 5.2 on flags
 *
 * luaV_execute runs Lua's functions that call one another in one native frame; where C has called Lua, or Lua a metamethod, there
 * is another frame of it. The native unwinder asks here at each: the functions that this one runs go into the trace in place of its
 * native frame. The outermost one of them has a flag. In 5.1 it has none: there it is one that no instruction OP_CALL of Lua has called.
 *
 * Nothing leads from a native frame to its lua_State, which is an argument. But the callers of luaV_execute need it afterwards, so they keep
 * it in a register, which luaV_execute saves where it begins; so do those that it calls. Of the words there that is the lua_State which looks
 * like one that runs. Of several it is the one whose errors are caught nearest: errorJmp leads to a place on the native stack, and coroutines
 * have one each. A coroutine that has resumed another one is in other words again.
 *
 * The instruction is saved in the CallInfo before whatever may fail, and always in 5.2 and 5.3. Else the loop has it in a register:
 * the innermost function's is what points into its code, of what registers have or had when a function was called from there.
 */
#ifndef EF_LUA_H
#define EF_LUA_H

#include "../cookie.h"
#include "../unwind-frame.h"

/* lobject.h: types of values, in the low bits */
#define LUA_TBOOLEAN 1
#define LUA_TFUNCTION 6
#define LUA_TTHREAD 8
#define LUA_TYPE(tag) ((tag)&15)
/* lopcodes.h of 5.1 */
#define LUA_OP_CALL 28
#define LUA_UNKNOWN(bits) ((1ULL << (bits)) - 1)
#define LUA_MAX_CODE (1U << 24)

enum lua_result {
	LUA_NEXT = 0,
	LUA_RUN_OVER = 1,
	LUA_END = 2, /* no frame is left, or what follows can't be trusted */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, struct ef_lua);
} lua_files SEC(".maps");

#define LUA_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_lua_read_failed)
#define LUA_WORD(address) user_word((address), EF_COUNTER_lua_read_failed)

static __always_inline int load_lua(struct ef_scratch *s, struct ef_lua_state *w, u64 key)
{
	struct ef_lua *file = bpf_map_lookup_elem(&lua_files, &key);
	if (!file)
		return 1;
	w->file = *file;
	w->key = key;
	w->thread = w->next.info = 0;
	w->end = s->state.leaf.by_dwarf_number[REG_SP];
	return 0;
}

static __always_inline bool is_lua_pointer(u64 address)
{
	return address >= 4096 && !(address & 7) && address < USER_ADDRESS_END;
}

/* Reads a CallInfo into w->read. False where it has no function: behind the last one, and where none is. Global, so that it is
 * verified once. */
__noinline int read_lua_call(u64 info)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUA);
	if (!s)
		return 0;
	struct ef_lua_state *w = &s->runtimes.lua;
	struct lua_call *call = &w->read;
	u64 type = 0;

	__builtin_memset(call, 0, sizeof(*call));
	if (!is_lua_pointer(info) || LUA_READ(&call->slot, 8, info + w->file.info_function) ||
	    !is_lua_pointer(call->slot) || LUA_READ(w->value, sizeof(w->value), call->slot) ||
	    LUA_TYPE(w->value[1]) != LUA_TFUNCTION)
		return 0;
	call->function = w->value[0];
	if (LUA_READ(&call->pc, 8, info + w->file.info_pc) ||
	    (w->file.info_status && LUA_READ(&call->status, 2, info + w->file.info_status)))
		return 0;
	bool is_lua = (w->value[1] & w->file.tag_mask) == w->file.tag_lua;
	if (w->file.has_c_flag) {
		if (LUA_READ(&type, 8, call->function + 8))
			return 0;
		is_lua = !(type >> 16 & 255);
	}
	u64 target = call->function;
	/* a function of C without a closure is the value itself */
	if (is_lua || w->file.has_c_flag || w->value[1] & 0x20)
		if (LUA_READ(&target, 8, call->function + w->file.closure_proto))
			return 0;
	if (is_lua && (!is_lua_pointer(target) || LUA_READ(&call->code, 8, target + w->file.proto_code)))
		return 0;
	call->proto = is_lua ? target : 0;
	call->native = is_lua ? 0 : target;
	call->info = info;
	return 1;
}

static __always_inline void read_lua_caller(struct ef_lua_state *w, u64 info)
{
	u64 before = info - w->file.info_bytes;

	if (w->file.info_previous)
		before = LUA_WORD(info + w->file.info_previous);
	/* the list's last one has no function */
	read_lua_call(before == info ? 0 : before);
}

/* Where errors of a lua_State that runs are caught, all ones: nowhere; 0: this is none. Global, so that it is verified once. */
__noinline u64 lua_protection(u64 thread)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUA);
	if (!s)
		return 0;
	struct ef_lua_state *w = &s->runtimes.lua;
	u64 info = 0, protection = 0;

	if (!is_lua_pointer(thread) || USER_READ(w->value, sizeof(w->value), thread) ||
	    (u8)w->value[1] != LUA_TTHREAD || w->value[1] >> (w->file.thread_status & 7) * 8 & 255 ||
	    USER_READ(&info, 8, thread + w->file.thread_info) || !read_lua_call(info) ||
	    USER_READ(&protection, 8, thread + w->file.thread_error))
		return 0;
	return protection ?: ~0ULL;
}

/* Takes a word for the lua_State if it is a better one. Global, so that it is verified once, not in each round. */
__noinline int try_lua_thread(u32 at)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUA);
	if (!s)
		return 0;
	struct ef_lua_state *w = &s->runtimes.lua;
	u64 word = w->words[at & (LUA_WORDS - 1)];

	if (word == w->found || word == w->thread)
		return 0;
	u64 protection = lua_protection(word);
	if (protection > w->end && (!w->found || protection < w->nearest)) {
		w->nearest = protection;
		w->found = word;
	}
	return 0;
}

/* The lua_State of a native frame of the loop; 0: not found. */
static __always_inline u64 find_lua_thread(struct ef_lua_state *w, u64 words)
{
	for (u32 i = 0; i < LUA_SAVED_WORDS + LUA_CALLEE_WORDS; i++)
		if (w->words[i] == w->thread && w->next.info)
			return w->thread;
	w->found = 0;
	for (u32 i = 0; i < LUA_SAVED_WORDS + LUA_CALLEE_WORDS + EF_REGISTERS && i < words; i++)
		try_lua_thread(i);
	return w->found;
}

/* Takes a word for the innermost function's instruction if it is a later one. Global as the above. */
__noinline int try_lua_pc(u32 at)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUA);
	if (!s)
		return 0;
	struct ef_lua_state *w = &s->runtimes.lua;
	u64 word = w->words[at & (LUA_WORDS - 1)], code = w->next.code;

	if (!(word & 3) && word > code && word - code <= w->code_bytes && word > w->pc)
		w->pc = word;
	return 0;
}

/* What the innermost function executes, where the loop has it in a register. */
static __always_inline void find_lua_pc(struct ef_lua_state *w)
{
	u32 count = 0;

	if (LUA_READ(&count, 4, w->next.proto + w->file.proto_count) || count > LUA_MAX_CODE)
		return;
	w->code_bytes = (u64)count * 4;
	w->pc = 0;
	for (u32 i = LUA_SAVED_WORDS; i < LUA_SAVED_WORDS + LUA_CALLEE_WORDS + EF_REGISTERS; i++)
		try_lua_pc(i);
	if (w->pc)
		w->next.pc = w->pc;
}

/* Finds the frames of a lua_State. Global, so that it is verified once. */
__noinline int begin_lua_thread(u64 thread)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUA);
	if (!s)
		return 0;
	struct ef_lua_state *w = &s->runtimes.lua;
	bool is_first = !w->thread;

	w->thread = thread;
	read_lua_call(LUA_WORD(thread + w->file.thread_info));
	w->next = w->read;
	if (!w->next.info)
		return 0;
	if (w->next.proto && w->file.thread_pc)
		w->next.pc = LUA_WORD(thread + w->file.thread_pc);
	if (w->next.proto && w->file.keeps_pc && is_first)
		find_lua_pc(w);
	read_lua_caller(w, w->next.info);
	w->caller = w->read;
	return 0;
}

static __always_inline u64 lua_position(u64 pc, u64 code, u32 bits)
{
	u64 position = pc > code ? (pc - code) / 4 - 1 : 0;

	return position < LUA_UNKNOWN(bits) ? position : LUA_UNKNOWN(bits);
}

/* `caller`: the function of Lua whose instruction has called it, or has called what has called it. */
static __always_inline int push_lua(struct ef_scratch *s, struct ef_lua_state *w, const struct lua_call *caller,
				    u64 argument)
{
	const struct lua_call *call = &w->next;
	u64 is_c = !call->proto, at = call->proto ?: caller->proto, cookie = 0, distance = EF_LUA_NO_CALLER;
	u64 position = call->native & LUA_UNKNOWN(EF_LUA_POSITION_BITS);

	if (at & 15) {
		count(EF_COUNTER_lua_bad_frame);
		return LUA_END;
	}
	if (!is_c) {
		if (LUA_READ(w->source, 8, at + w->file.proto_source) ||
		    LUA_READ(w->source + 1, 8, at + w->file.proto_lines) ||
		    (w->source[0] && LUA_READ(w->value, 8, w->source[0] + 8)))
			return LUA_END;
		/* a name that takes another one's place has another hash, if it is not too long for one */
		cookie = cookie_of_bits(4, w->source[0] ^ (w->source[0] ? w->value[0] >> 32 : 0), w->source[1]);
		position = lua_position(call->pc, call->code, EF_LUA_POSITION_BITS);
	}
	s64 units = (s64)(caller->proto - at) >> 4;
	if (caller->proto && !(caller->proto & 15) && units == (s32)units)
		distance = (u32)units;
	u64 before = lua_position(caller->pc, caller->code, EF_LUA_CALL_BITS);
	push_word(s, FRAME_WORD(EF_FRAME_LUA,
				((argument << 4 | cookie) << 1 | is_c) << EF_LUA_ADDRESS_BITS | at >> 4));
	push_word(s, distance << 32 | before << EF_LUA_POSITION_BITS | position);
	/* addresses of objects mean something in this process only */
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
	return LUA_NEXT;
}

/* Which argument of the caller, a function of C, the next one is; 0: none of the first three. pcall() puts true before it, or nil. */
static __always_inline u64 lua_argument(struct ef_lua_state *w)
{
	if (LUA_READ(w->arguments, sizeof(w->arguments), w->caller.slot + 16))
		return 0;
	u64 function = w->next.function;
	if (w->arguments[0] == function)
		return 1;
	if (w->arguments[2] == function)
		return LUA_TYPE(w->arguments[1]) <= LUA_TBOOLEAN ? 1 : 2;
	return w->arguments[4] == function ? 3 : 0;
}

/* Did the next function begin a run of the loop? */
static __always_inline bool begins_lua_run(struct ef_lua_state *w)
{
	u32 instruction = 0;

	if (!w->next.proto)
		return 0;
	if (w->file.fresh_mask)
		return (w->next.status & w->file.fresh_mask) == w->file.fresh_value;
	return !w->caller.proto || LUA_READ(&instruction, 4, w->caller.pc - 4) ||
	       (instruction & 63) != LUA_OP_CALL;
}

/* Takes the next frame. Global, so that it is verified once. */
__noinline int take_lua_frame(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUA);
	if (!s)
		return LUA_END;
	struct ef_lua_state *w = &s->runtimes.lua;
	u64 argument = 0;

	if (!w->next.info)
		return LUA_END;
	__builtin_memset(&w->none, 0, sizeof(w->none));
	bool is_over = begins_lua_run(w), is_c = !w->next.proto;
	read_lua_caller(w, w->caller.info);
	/* w->read: the caller's caller */
	if (w->caller.status & w->file.finalizer_mask)
		argument = EF_LUA_FINALIZER;
	else if (w->caller.info && !w->caller.proto)
		argument = lua_argument(w);
	const struct lua_call *caller = argument && argument != EF_LUA_FINALIZER ? &w->read : &w->caller;
	/* what has called a function that another one has put in its place is not known */
	bool is_named = caller->proto && (is_c || !(w->next.status & w->file.tail_mask));
	int result = LUA_NEXT;
	if (is_named || !is_c)
		result = push_lua(s, w, is_named ? caller : &w->none,
				  is_named || argument == EF_LUA_FINALIZER ? argument : 0);
	w->next = w->caller;
	w->caller = w->read;
	return result ?: is_over ? LUA_RUN_OVER : LUA_NEXT;
}

/* As unwind_steps(). Stops behind the frame that began the run, if `one_run`. */
__noinline int take_lua_frames(u32 one_run)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUA);
	if (!s)
		return LUA_END;
	for (u32 i = 0; i < FRAMES_AT_A_TIME; i++) {
		if (s->state.user_frames >= config.max_user_frames)
			return LUA_END;
		int result = take_lua_frame();
		if (result == LUA_END || (result == LUA_RUN_OVER && one_run))
			return result;
	}
	return LUA_NEXT;
}

static __always_inline void take_lua_run(struct ef_lua_state *w, u32 one_run)
{
	for (u32 i = 0; i < EF_MAX_USER_FRAMES / FRAMES_AT_A_TIME + 1; i++) {
		int result = take_lua_frames(one_run);
		if (result == LUA_RUN_OVER)
			return;
		if (result == LUA_END)
			break;
	}
	w->next.info = 0;
}

/* Gathers the words that may be the lua_State: saved by the loop, saved by what it has called, of the leaf. How many, 0: none. */
static __always_inline u64 gather_lua_words(struct ef_scratch *s, struct ef_lua_state *w, u64 cfa)
{
	u32 count = LUA_SAVED_WORDS;

	(void)cfa;
	if (LUA_READ(w->words, LUA_SAVED_WORDS * 8, LUA_SAVED(s, cfa)))
		return 0;
	if (LUA_CALLEE_WORDS && (s->is_leaf || LUA_READ(w->words + count, LUA_CALLEE_WORDS * 8,
							s->state.sp - 8 - LUA_CALLEE_WORDS * 8)))
		__builtin_memset(w->words + count, 0, LUA_CALLEE_WORDS * 8);
	count += LUA_CALLEE_WORDS;
	if (w->thread)
		return count;
	for (u32 i = 0; i < EF_REGISTERS; i++)
		w->words[count + i] = s->state.leaf.by_dwarf_number[i];
	return count + EF_REGISTERS;
}

/* Pushes the Lua frames that the native frame at s->state.pc runs, in place of that: without a symbol each of its addresses would be
 * another function. */
__noinline int unwind_lua(u32 slot)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(LUA);
	if (!s)
		return 0;
	struct ef_lua_state *w = &s->runtimes.lua;
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];
	u64 cfa = 0;
	u32 frames = s->state.user_frames;

	if (begins_in_sample(s, EF_RUNTIME_LUA))
		w->key = 0;
	if (w->key != m->key && load_lua(s, w, m->key))
		return 0;
	if (s->table_offset - w->file.loop_start >= w->file.loop_length || find_rule(slot) ||
	    compute_cfa(s, &s->rule, &cfa))
		return 0;
	u64 words = gather_lua_words(s, w, cfa), thread = find_lua_thread(w, words);
	if (!thread) {
		count(EF_COUNTER_lua_no_thread);
		return 0;
	}
	if (thread != w->thread) {
		/* of a coroutine that was resumed after C had called Lua in it, and is all in one native frame now */
		if (w->next.info)
			take_lua_run(w, 0);
		begin_lua_thread(thread);
	}
	w->end = cfa;
	take_lua_run(w, 1);
	if (s->state.user_frames == frames)
		return 0;
	s->state.runtime_file = m->key;
	if (apply_rule(s) == STEP_DONE)
		s->state.pc = 0;
	return 1;
}

#endif
