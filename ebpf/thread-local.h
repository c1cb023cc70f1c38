/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the sampled thread has of its own: its thread pointer, thread-local variables (TLS), and what pthread keys lead
 * to (TSD). `failed`: the counter of reads that fail. */
#ifndef EF_THREAD_LOCAL_H
#define EF_THREAD_LOCAL_H

#include "memory.h"
#include "user-memory.h"

/* Where glibc's table of keys may begin below the thread pointer, and of what it points to. */
#define GLIBC_KEYS_FIRST 1408
#define GLIBC_KEYS_BLOCK 512
/* Distances from the thread pointer are smaller, addresses larger. */
#define MAX_STATIC_TLS (1 << 22)

static __always_inline u64 thread_pointer(void)
{
	struct task_struct *task = (void *)SAMPLED_TASK();
	return KERNEL_FIELD(task, task_struct, THREAD_POINTER_MEMBER);
}

#ifndef GLIBC_KEYS
#define GLIBC_KEYS find_glibc_keys
/* The table's first word points to the first block, which is just before it (nptl/descr.h: specific_1stblock and
 * specific). No other word of a thread points to 512 bytes before itself. */
__noinline u64 find_glibc_keys(u64 tp, u32 failed)
{
	struct ef_scratch *s = config.runtimes ? get_scratch() : NULL;
	if (!s || read_or_count(s->glibc_keys, sizeof(s->glibc_keys), tp - GLIBC_KEYS_FIRST, failed))
		return 0;
	for (u32 i = 0; i < GLIBC_KEYS_WORDS; i++) {
		u64 at = tp - GLIBC_KEYS_FIRST + i * 8;
		if (s->glibc_keys[i] == at - GLIBC_KEYS_BLOCK)
			return at;
	}
	return 0;
}
#endif

/* What pthread_getspecific(key) gives. glibc keeps 32 keys inside struct pthread and the others in blocks;
 * musl has one array (src/thread/pthread_getspecific.c). */
static __always_inline u64 thread_specific(u64 tp, u32 key, bool is_musl, u32 failed)
{
	if (is_musl)
		return user_word(user_word(MUSL_KEYS(tp), failed) + key * 8ULL, failed);
	u64 keys = GLIBC_KEYS(tp, failed);
	if (!keys)
		return 0;
	u64 block = key < 32 ? keys - GLIBC_KEYS_BLOCK : user_word(keys + (key >> 5) * 8ULL, failed);
	return block ? user_word(block + (key & 31) * 16ULL + 8, failed) : 0;
}

/* Whether the thread's vector of modules is so long: that of one which has not come to a library that was loaded late may not
 * be. glibc has its length before it, musl at its begin. */
static __always_inline bool has_module(u64 tp, u64 module, bool is_musl, u32 failed)
{
	u64 vector = user_word(MODULE_VECTOR(tp, is_musl), failed);
	return module <= user_word(is_musl ? vector : vector - 16, failed);
}

/* Where the thread has the variables of a shared library, 0: nowhere yet. */
static __always_inline u64 thread_local_block(u64 tp, u64 module, bool is_musl, u32 failed)
{
	if (module > 0xffff)
		return 0;
	u64 vector = user_word(MODULE_VECTOR(tp, is_musl), failed);
	u64 block = user_word(vector + module * (is_musl ? 8 : 16), failed);
	return block < USER_ADDRESS_END ? block : 0;
}

/* A thread-local variable of a shared library; `place`: the module's number and the offset in there, as the loader has
 * left them. */
static __always_inline u64 thread_local_word(u64 tp, const u64 *place, s32 add, bool is_musl, u32 failed)
{
	u64 block = thread_local_block(tp, place[0], is_musl, failed);
	return block ? user_word(block + place[1] + add, failed) : 0;
}

/* The same by a descriptor, a function and its argument: the distance from the thread pointer or, of a library that was loaded
 * later and found no room there, the address of module ID and offset. */
static __always_inline u64 described_word(u64 tp, u64 descriptor, s32 add, bool is_musl, u32 failed)
{
	u64 words[2] = {};

	if (read_or_count(words, sizeof(words), descriptor, failed))
		return 0;
	if (words[1] < MAX_STATIC_TLS)
		return user_word(tp + words[1] + add, failed);
	if (read_or_count(words, sizeof(words), words[1], failed))
		return 0;
	return thread_local_word(tp, words, add, is_musl, failed);
}

#endif
