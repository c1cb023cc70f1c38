/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Between the unwinders, which are built with the kernel's types, and host.c,
 * which is built with libc's. */
#ifndef EF_UNWINDERS_H
#define EF_UNWINDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTERS 17 /* by DWARF number: rax rdx rcx rbx rsi rdi rbp rsp r8..r15, then rip */
#define THREAD_POINTER REGISTERS

struct host_map {
	const char *name;
	const void *id;
	size_t key_bytes, value_bytes;
};

/* Of unwinders.c */
extern const struct host_map unwinder_maps[];
extern const size_t unwinder_map_count, block_bytes;
extern const char *const counter_names[];
extern const size_t counter_count;

struct unwound {
	const uint64_t *words;
	uint32_t word_count, user_frames, marker;
};
void configure(uint32_t max_user_frames, uint32_t runtimes);
/* Unwinds from these registers; the words stay valid until the next call. */
struct unwound unwind(const uint64_t registers[REGISTERS], uint64_t thread_pointer, uint32_t tgid,
		      uint64_t ktime_ns);

/* Of host.c */
struct host_mapping {
	uint64_t start, end, delta, key;
	bool is_jit; /* the key is that of a table for code that no file backs */
};
const struct host_mapping *find_host_mapping(uint64_t address);

#endif
