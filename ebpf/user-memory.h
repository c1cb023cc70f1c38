/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Memory of the sampled process: it may say anything, or not be there. */
#ifndef EF_USER_MEMORY_H
#define EF_USER_MEMORY_H

#include "maps.h"

/* Either all of a page is in memory, or nothing. */
#define PAGE_BYTES 4096ULL

/* Of the thread that runs; pages.h has another thread's. */
#ifndef USER_READ
#define USER_READ(dst, size, address) bpf_probe_read_user((dst), (size), (const void *)(u64)(address))
/* Where a function is called by six others: a stack of calls has 8 frames. */
#define USER_READ_HERE(dst, size, address) USER_READ((dst), (size), (address))
#define USER_READ_TEXT(dst, size, address) bpf_probe_read_user_str((dst), (size), (const void *)(u64)(address))
#define SAMPLED_TASK() bpf_get_current_task()
#define SAVED_REGISTERS(task) bpf_task_pt_regs(bpf_get_current_task_btf())
#endif

/* As USER_READ, but a failure counts. */
static __always_inline long read_or_count(void *dst, u32 size, u64 address, enum ef_counter failed)
{
	long error = USER_READ(dst, size, address);
	if (error)
		count(failed);
	return error;
}

/* A word, 0 where it can't be read (which counts as `failed`) or the address comes of a null pointer. Global, so that it
 * is verified once. */
__noinline u64 user_word(u64 address, u32 failed)
{
	u64 word = 0;
	if (config.runtimes && address >= 4096 && USER_READ_HERE(&word, 8, address))
		count(failed);
	return word;
}

#endif
