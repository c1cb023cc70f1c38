/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What all programs are written with: the kernel's types and helpers, the processor's, and the settings. */
#ifndef EF_KERNEL_H
#define EF_KERNEL_H

#include "kernel-memory.h"
#include "records.h"

const volatile struct ef_config config = {};

#include "arch.h"

/* Keeps clang from checking one copy of a value and using another: the verifier tracks registers, not names. A global
 * function's parameter that is not used otherwise has to be made so: clang 17 and later pass nothing for it, which the verifier
 * refuses. */
#define OPAQUE(value) asm volatile("" : "+r"(value))

static __always_inline u64 mix64(u64 x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	return x;
}

#define HASH_START 0x9e3779b97f4a7c15ULL

static __always_inline u64 fold_word(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
	return hash ^ hash >> 32;
}

#endif
