/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Maps, per-CPU scratch memory and counters of all programs. */
#ifndef EF_MAPS_H
#define EF_MAPS_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "records.h"
#include "counters.h"

const volatile struct ef_config config = {};

/* Reads `size` bytes of kernel memory; 0 on success. */
#define KERNEL_READ(dst, size, address) bpf_probe_read_kernel((dst), (size), (const void *)(u64)(address))
#define FIELD_OFFSET(type, field) bpf_core_field_offset(struct type, field)

#include "arch.h"

struct bpf_perf_event_data {
	struct ef_user_regs regs;
	u64 sample_period;
	u64 addr;
};

struct ef_block {
	u8 bytes[EF_BLOCK_BYTES];
};

struct ef_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(key_size, 4);
	__uint(value_size, EF_BLOCK_BYTES);
};

/* Sizes that depend on the machine or on flags are set before load: see agent/tracer/bpf-object.ts. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, 0);
	__type(key, u64);
	__type(value, struct ef_file_entry);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct ef_code_key);
	__type(value, struct ef_code);
} process_code SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 8192);
	__type(key, u32);
	__array(values, struct ef_table);
} tables SEC(".maps");

/*
 * What was sent already. Both are asked for each sample, with caches that other work has filled since the last one, so
 * each is an array of sets of one cache line, found by the lower bits of what is looked for: a hash table of the
 * kernel's waits for memory five times. BPF_F_MMAPABLE, for nothing but that: it aligns elements with cache lines.
 *
 * A way is written with plain stores. Whatever a race makes of it, a trace or a process is sent again, never taken
 * for known: a torn entry is nobody's. docs/decisions/sets-of-a-cache-line.md
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EF_SEEN_SETS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct ef_seen_set);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EF_PROCESS_SETS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct ef_process_set);
} processes SEC(".maps");

/* The sampler is replaced by one with more runtimes when a runtime is first met; see enum ef_sampler_slot. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, EF_SAMPLER_SLOT_MAX);
	__uint(key_size, 4);
	__uint(value_size, 4);
} samplers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u32);
} targets SEC(".maps");

/* Of 2^32 samples so many are left out: user space sets it while it has more to do than it may. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} shed_share SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EF_COUNTER_MAX);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

/* Memory of each CPU, since BPF's own stack has 512 bytes; PER_CPU also makes get_NAME(). */
#define PER_CPU_MAP(name, of_type) \
	struct { \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
		__uint(max_entries, 1); \
		__type(key, u32); \
		__type(value, of_type); \
	} name SEC(".maps");
#define PER_CPU(name, of_type) \
	PER_CPU_MAP(name, of_type) \
	static __always_inline of_type *get_##name(void) \
	{ \
		u32 zero = 0; \
		return bpf_map_lookup_elem(&name, &zero); \
	}

/* A mapping of the sampled process, kept for the length of one sample. */
struct ef_mapping {
	u64 start;
	u64 length; /* 0: empty slot */
	u64 delta;  /* added to an address it gives the operand of the frame's header word */
	u64 key;    /* 0: no file */
	u64 is_jit; /* the key is that of a table, not of a file */
	struct ef_file_entry file;
};
#define EF_MAPPINGS 4
/* What walks a stack does so many rounds in a function of its own, and calls that in a loop. */
#define FRAMES_AT_A_TIME 32

/* What a VMA says, and who its file is: see vma.h. */
struct vma_fields {
	u64 start, end, pgoff, file, flags;
};

struct file_identity {
	u64 inode, size, ctime_ns;
	u32 device, generation;
};

struct ef_registers {
	u64 by_dwarf_number[EF_REGISTERS];
};

/* Everything that a sample works on. Counters that a loop bumps live here: in registers they would defeat
 * the verifier's pruning (1M instructions). So do structs: all functions on the way to the deepest one share
 * 512 bytes of stack. */
struct ef_scratch {
	struct ef_sample sample;
	struct ef_mapping mappings[EF_MAPPINGS];
	struct ef_registers leaf;
	struct ef_rule rule;
	u64 mm;
	u64 pc;
	u64 sp;
	u64 fp;
	u64 hash;
	u64 table_offset; /* look-up argument: offset in the file */
	u32 next_mapping;
	u32 words;
	u32 user_frames;
	u32 is_return_address;
	u32 is_leaf;
	/* the leaf made a system call: its pc lies behind the instruction, as a return address behind its call */
	u32 is_behind_syscall;
	/* past the leaf: its kept register is still known, or that of the caller was found */
	u32 knows_kept;
	u32 found_kept;
	/* past a signal frame all registers are known, as in a leaf */
	u32 found_all;
	u32 has_anonymous;
	u32 has_interpreted;
	/* marker of the frame that was passed by its frame pointer, until its caller proves to be code */
	u32 marker_if_guess_fails;
	/* that marker as long as sp is only known not to lie above the stack pointer, 0: sp is the stack pointer */
	u32 marker_if_sp_unknown;
	u32 marker;
	u32 is_unwound;
	u64 unread; /* address of the part of the stack that could not be read; 0: none */
	u64 frame_pointer_frames;
	u64 vma_lookups;
	/* Processor mode of the interrupted code; here, since in a register it doubles what the verifier walks through */
	u64 mode;
	struct ef_user_regs user_regs;
	u64 signal_registers[SIGNAL_REGISTERS];
	struct vma_fields vma;
	struct file_identity file_identity;
	struct ef_code_key code_key;
	struct ef_file_entry pending_file;
	u64 maple_node[16];
	struct ef_trace trace;
	/* file and process records; a name of up to 256 bytes may overhang the end of each buffer */
	union {
		struct ef_file file;
		struct ef_process process;
		struct ef_runtime_met met;
		/* not used here: keeps the types in the object's BTF, from which the TypeScript view is made */
		struct ef_exit exit;
		struct ef_page page;
		struct ef_code code;
		u8 bytes[sizeof(struct ef_process) + 256];
	} record;
};
_Static_assert(sizeof(struct ef_scratch) < 32768, "a per-CPU array's value must stay below 32 KiB");

PER_CPU(scratch, struct ef_scratch)

/* Process events run in task context and may be interrupted by a sample: they have memory of their own. */
struct ef_event_scratch {
	struct ef_process process;
	u8 overhang[256];
};
PER_CPU(event_scratch, struct ef_event_scratch)

/* One add instruction for whom a tick may interrupt. */
#ifdef EF_INTERRUPTIBLE
#define ADD(value, n) __sync_fetch_and_add((value), (n))
#else
#define ADD(value, n) (*(value) += (n))
#endif

static __always_inline void count_by(enum ef_counter counter, u64 n)
{
	u32 key = counter;
	u64 *value = bpf_map_lookup_elem(&counters, &key);
	if (value)
		ADD(value, n);
}

static __always_inline void count(enum ef_counter counter)
{
	count_by(counter, 1);
}

/* A pointer-sized member of a kernel struct whose address is only a number; 0 if it can't be read. */
#define KERNEL_WORD(address, type, field) \
	({ \
		u64 word_ = 0; \
		KERNEL_READ(&word_, 8, (u64)(address) + FIELD_OFFSET(type, field)); \
		word_; \
	})

/* Keeps clang from checking one copy of a value and using another: the verifier tracks registers, not names. */
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

#endif
