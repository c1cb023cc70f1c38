/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Objects may follow each other at one address: a hash of a few of their words, of which frames have room for some bits, tells them
 * apart. agent/interpreters/cookie.ts does the same. */
#ifndef EF_COOKIE_H
#define EF_COOKIE_H

#include "kernel.h"

static __always_inline u64 hash_of_2_words(u64 first, u64 second)
{
	return fold_word(fold_word(HASH_START, first), second);
}

/* Its uppermost bits. */
static __always_inline u64 cookie_of_bits(u32 bits, u64 first, u64 second)
{
	return hash_of_2_words(first, second) >> (64 - bits);
}

static __always_inline u32 cookie_of_2_words(u64 first, u64 second)
{
	return (u32)hash_of_2_words(first, second);
}

static __always_inline u32 cookie_of_4_words(u64 first, u64 second, u64 third, u64 fourth)
{
	return (u32)fold_word(fold_word(hash_of_2_words(first, second), third), fourth);
}

#endif
