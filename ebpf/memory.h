/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The memory that programs work in, since BPF's own stack has 512 bytes: one map, an element for each context in which a
 * program may run on a CPU. A context interrupts others and is never interrupted by itself:
 *
 *   tick       the timer's interrupt
 *   event      tracepoints, and whatever else runs where a tick may interrupt
 *   deferred   the sampled thread on its way back to user space, with preemption off
 *   switch     the scheduler: an event may be preempted where its kernel lets it be
 *
 * Which one a program runs in is a setting of the object that it was loaded with (config.context): a constant for the
 * verifier, and no argument of any function. Two events may nest; the one that comes second finds the memory taken
 * and is counted.
 */
#ifndef EF_MEMORY_H
#define EF_MEMORY_H

#include "maps.h"
#include "vma-fields.h"
#include "off-cpu/records.h"
#include "thread-context/state.h"
/* made of runtimes.def by the Makefile: state.h of each runtime */
#include "runtime-state.h"

/* A mapping of the sampled process, kept for the length of one sample. */
struct ef_mapping {
	u64 start;
	u64 length;    /* 0: empty slot */
	u64 delta;     /* added to an address it gives the operand of the frame's header word */
	u64 key;       /* 0: no file */
	u64 table_key; /* which table it is, of code of a JIT as well; valid where `file` has one */
	u32 is_jit;    /* the key is that of a table, not of a file */
	u32 is_shared; /* memory that processes share, without a file that could be read */
	struct ef_file_entry file;
};
#define EF_MAPPINGS 4
/* Words of a thread in which glibc's table of keys is looked for, where its place is not known */
#define GLIBC_KEYS_WORDS 64
/* A walk over a stack does so many rounds in a function of its own, which it calls in a loop. */
#define FRAMES_AT_A_TIME 32

struct ef_registers {
	u64 by_dwarf_number[EF_REGISTERS];
};

/* How far a stack was unwound, and from where it goes on: all that it takes to do so again, or later. */
struct ef_unwind {
	u64 mm;
	/* Processor mode of the interrupted code; in a register it would double what the verifier walks through */
	u64 mode;
	u64 pc;
	u64 sp;
	u64 fp;
	u64 hash;
	u64 unread;       /* address of the part of the stack that could not be read; 0: none */
	u64 runtime_file; /* see ef_trace */
	u32 kernel_frames;
	u32 words;
	u32 user_frames;
	u32 marker;
	u32 has_anonymous;
	u32 has_interpreted;
	/* the leaf made a system call: its pc lies behind the instruction, as a return address behind its call */
	u32 is_behind_syscall;
	u32 reserved;
	struct ef_registers leaf;
};

/* What each runtime's unwinder keeps for the length of a sample. */
struct ef_runtime_states {
#define RUNTIME(name, folder, map, owns) struct ef_##folder##_state folder;
#include "runtimes.def"
#undef RUNTIME
};

/* Everything that a sample works on. Counters that a loop bumps live here: in registers they would defeat
 * the verifier's pruning (1M instructions). So do structs: all functions on the way to the deepest one share
 * 512 bytes of stack. */
struct ef_scratch {
	u64 is_taken; /* from take_scratch() to release_scratch() */
	struct ef_sample sample;
	/* behind the sample, since they are sent together */
	u8 labels[EF_LABELS_BYTES + sizeof(struct ef_label)];
	struct ef_unwind state;
	struct ef_mapping mappings[EF_MAPPINGS];
	struct ef_rule rule;
	u64 table_offset; /* look-up argument: offset in the file */
	u32 next_mapping;
	u32 is_return_address;
	u32 is_leaf;
	/* past the leaf: its callee-saved register is still known, or that of the caller was found */
	u32 knows_callee_saved;
	u32 found_callee_saved;
	/* past a signal frame all registers are known, as in a leaf */
	u32 found_all;
	/* a frame was passed by its frame pointer: the marker for it if its caller proves not to be code */
	u32 marker_if_guess_fails;
	/* sp may lie below the stack pointer, but not above it: the marker for a rule that needs sp; 0: sp is right */
	u32 marker_if_sp_unknown;
	u32 is_unwound;
	u64 trampoline; /* of return probes: see return-probes.h */
	u64 returned_to; /* the leaf is a function that has just returned, with the registers of then; 0: it is not */
	u32 begun_runtimes; /* bit 1 << enum ef_runtime: its state is of this sample */
	u32 has_looked_up;  /* what follows was copied from process_runtimes */
	u32 has_asked;      /* in this sample which runtimes the process has, or there is an answer */
	u32 detected;
	u64 runtime_files[EF_RUNTIME_MAX];
	u64 runtime_deltas[EF_RUNTIME_MAX];
	struct ef_process_runtimes new_runtimes;
	u64 frame_pointer_frames;
	u64 vma_lookups;
	struct ef_user_regs user_regs;
	u64 signal_registers[SIGNAL_REGISTERS];
	struct vma_fields vma;
	struct file_identity file_identity;
	struct ef_code_key code_key;
	struct ef_file_entry pending_file;
	u64 maple_node[16];
	u32 next_word; /* of the trace, while its functions are sent */
	u64 glibc_keys[GLIBC_KEYS_WORDS];
	struct ef_runtime_states runtimes;
	struct ef_thread_context_state thread_context;
	struct ef_trace trace;
	/* file and process records; a name of up to 256 bytes may overhang the end of each buffer */
	union {
		struct ef_file file;
		struct ef_process process;
		struct ef_runtime_detected detected;
		struct ef_function function;
		/* not used here: keeps the types in the object's BTF, from which the TypeScript view is made */
		struct ef_exit exit;
		struct ef_page page;
		struct ef_code code;
		struct ef_event_caller caller;
		struct ef_thread thread;
		struct ef_labelled_wait labelled_wait;
		struct ef_label label;
		struct ef_thread_context_record context_record;
		struct ef_late_request late;
		struct ef_page_key page_key;
		u8 bytes[sizeof(struct ef_process) + 256];
	} record;
};
_Static_assert(offsetof(struct ef_scratch, labels) ==
		       offsetof(struct ef_scratch, sample) + sizeof(struct ef_sample),
	       "labels follow the sample");
_Static_assert(sizeof(struct ef_scratch) < 32768, "a per-CPU array's value must stay below 32 KiB");

#ifndef SCRATCH
#define SCRATCH scratch
#define OWN_SCRATCH config.context
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EF_CONTEXT_MAX);
	__type(key, u32);
	__type(value, struct ef_scratch);
} SCRATCH SEC(".maps");
#else
#define OWN_SCRATCH 0
/* Of one program that never runs twice at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ef_scratch);
} SCRATCH SEC(".maps");
#endif

/* The page may be in memory once the thread itself has touched it: see deferred.bpf.c. */
static __always_inline void note_unread(struct ef_scratch *s, u64 address)
{
	if (!s->state.unread)
		s->state.unread = address;
}

static __always_inline struct ef_scratch *scratch_of(u32 context)
{
	return bpf_map_lookup_elem(&SCRATCH, &context);
}

/* That of the context that the program runs in. */
static __always_inline struct ef_scratch *get_scratch(void)
{
	return scratch_of(OWN_SCRATCH);
}

/* The same; NULL as well while the program that this one has interrupted works in it. */
static __always_inline struct ef_scratch *take_scratch(void)
{
	struct ef_scratch *s = get_scratch();

	if (!s) {
		count(EF_COUNTER_scratch_missing);
		return NULL;
	}
	if (s->is_taken) {
		count(EF_COUNTER_samples_nested);
		return NULL;
	}
	s->is_taken = 1;
	/* a program that interrupts from here on must see it: the compiler must not write to the sample before */
	asm volatile("" ::: "memory");
	return s;
}

static __always_inline void release_scratch(struct ef_scratch *s)
{
	asm volatile("" ::: "memory");
	s->is_taken = 0;
}

#define HAS_RUNTIME(name) (config.runtimes & 1U << EF_RUNTIME_##name)
/* With what a global function of a runtime begins: NULL where the runtime is not loaded. */
#define RUNTIME_SCRATCH(name) (HAS_RUNTIME(name) ? get_scratch() : NULL)

/* True once a sample for each runtime: its state is still that of an earlier sample. */
static __always_inline bool begins_in_sample(struct ef_scratch *s, u32 runtime)
{
	u32 bit = 1U << runtime;

	if (s->begun_runtimes & bit)
		return 0;
	s->begun_runtimes |= bit;
	return 1;
}

#endif
