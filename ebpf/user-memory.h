/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Memory of the sampled process: it may say anything, or not be there. */
#ifndef EF_USER_MEMORY_H
#define EF_USER_MEMORY_H

#include "maps.h"

/* Either all of a page is in memory, or nothing. */
#define PAGE_BYTES 4096ULL

#define USER_READ(dst, size, address) bpf_probe_read_user((dst), (size), (const void *)(u64)(address))

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
	if (config.runtimes && address >= 4096)
		read_or_count(&word, 8, address, failed);
	return word;
}

#endif
