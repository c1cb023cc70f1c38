/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Memory of the kernel. From 6.2 on bpf_rdonly_cast makes each load an instruction; what can't be read is 0. A kernel that
 * is locked down for confidentiality allows no other way. Objects for older kernels (EF_NO_RDONLY_CAST) do not name it, and
 * call a helper.
 */
#ifndef EF_KERNEL_MEMORY_H
#define EF_KERNEL_MEMORY_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define FIELD_OFFSET(type, field) bpf_core_field_offset(struct type, field)
/* The address of a member, as a number. */
#define FIELD_AT(address, type, field) ((u64)(address) + FIELD_OFFSET(type, field))

#ifndef EF_NO_RDONLY_CAST
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;

/* A number of at most 8 bytes. The type cast to only has to begin with such a one. */
#define KERNEL_LOAD(kind, address) \
	(*(kind *)bpf_rdonly_cast((const void *)(u64)(address), bpf_core_type_id_kernel(struct rb_node)))
/* A member that is a number or a pointer. */
#define KERNEL_FIELD(address, type, field) \
	KERNEL_LOAD(typeof(((struct type *)0)->field), FIELD_AT((address), type, field))

static __always_inline long load_words(void *to, u64 size, u64 address)
{
#pragma unroll
	for (u64 at = 0; at + 8 <= size; at += 8)
		*(u64 *)(to + at) = KERNEL_LOAD(u64, address + at);
	if (size & 4)
		*(u32 *)(to + (size & ~7ULL)) = KERNEL_LOAD(u32, address + (size & ~7ULL));
	return 0;
}

/* Reads `size` bytes, constant and a multiple of 4; 0 on success. */
#define KERNEL_READ(dst, size, address) load_words((dst), (size), (u64)(address))

/* Text of at most `size` bytes with the NUL that ends it; returns its bytes. */
static __always_inline long load_text(u8 *to, u64 size, u64 address)
{
	for (u64 i = 0; i < size; i++) {
		to[i] = KERNEL_LOAD(u8, address + i);
		if (!to[i])
			return i + 1;
	}
	to[size - 1] = 0;
	return size;
}
#define KERNEL_READ_TEXT(dst, size, address) load_text((dst), (size), (u64)(address))

/* From `at` on, of `bytes` bytes in the value of a map. */
static __always_inline void copy_part(void *to, u32 size, const void *from, u32 bytes, u32 at)
{
	struct bpf_dynptr memory;

	bpf_dynptr_from_mem((void *)from, bytes, 0, &memory);
	bpf_dynptr_read(to, size, &memory, at, 0);
}
#else
#define KERNEL_READ(dst, size, address) bpf_probe_read_kernel((dst), (size), (const void *)(u64)(address))
#define KERNEL_READ_TEXT(dst, size, address) \
	bpf_probe_read_kernel_str((dst), (size), (const void *)(u64)(address))
#define KERNEL_FIELD(address, type, field) \
	({ \
		typeof(((struct type *)0)->field) field_ = 0; \
		KERNEL_READ(&field_, sizeof(field_), FIELD_AT((address), type, field)); \
		field_; \
	})
#define copy_part(to, size, from, bytes, at) KERNEL_READ((to), (size), (const u8 *)(from) + (at))
#endif

#define copy_value(to, from) copy_part((to), sizeof(from), (from), sizeof(from), 0)

/* A pointer-sized member as a number. */
#define KERNEL_WORD(address, type, field) ((u64)KERNEL_FIELD((address), type, field))

#endif
