/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Every struct and number that kernel and user space share. agent/records/records.gen.ts is generated from
 * the BTF of this header (scripts/generate-records.ts); never write an offset by hand elsewhere.
 *
 * A trace is an array of 64-bit words: first `kernel_frames` raw kernel addresses (leaf first), then the user
 * frames (leaf first). A user frame starts with a header word: bits 63..56 are its kind, bits 55..0 its
 * operand; EF_FRAME_FILE has one more word, the file key, and frames of a runtime have one of theirs: they are
 * followed, somewhere in the trace, by the EF_FRAME_FILE of the native code that runs them, unless the stack was cut
 * before it: see runtime_file. Return addresses, and what a system call goes back to, are already decremented by one in
 * user frames; in kernel frames nothing is.
 */
#ifndef EF_RECORDS_H
#define EF_RECORDS_H

#include "vmlinux.h"
#include "profile-types.h"

#define EF_MAX_KERNEL_FRAMES 127
#define EF_MAX_USER_FRAMES 1023
/* kernel words + 2 words a user frame + 1 marker, rounded up */
#define EF_MAX_WORDS 2176
#define EF_COMM_SIZE 16
#define EF_PATH_BYTES 1024
#define EF_PATH_COMPONENTS 32
#define EF_CGROUP_BYTES 512
/* Stacks that may wait on each CPU for a page */
#define EF_DEFERRED_PER_CPU 8

enum ef_frame_kind {
	EF_FRAME_NONE = 0,
	EF_FRAME_FILE = 2,   /* operand: offset in the file; next word: file key */
	EF_FRAME_ANON = 3,   /* operand: absolute address in memory that no file backs (JIT code) */
	EF_FRAME_MARKER = 4, /* operand: enum ef_marker; the last word of a stack that was cut */
/* then one for each runtime, whose records.h says what the two words are */
#define RUNTIME(name, folder, map, owns) EF_FRAME_##name,
#include "runtimes.def"
#undef RUNTIME
};

/* Why a stack does not reach its root. Append only. */
enum ef_marker {
	EF_MARKER_NONE = 0,
	EF_MARKER_DEPTH = 1,       /* deeper than --max-user-frames */
	EF_MARKER_NO_TABLE = 2,    /* no unwind table for this file and no usable frame pointer */
	EF_MARKER_PENDING = 3,     /* the file's table is still being made, and no usable frame pointer */
	EF_MARKER_NO_RULE = 4,     /* the table has no rule for this address, and no usable frame pointer */
	EF_MARKER_ANON = 5,        /* code that no file backs, and no usable frame pointer */
	EF_MARKER_STACK_READ = 6,  /* the stack page could not be read */
	EF_MARKER_UNMAPPED = 7,    /* the next program counter lies in no executable mapping */
	EF_MARKER_REGISTER = 8,    /* the rule needs a register that is known in the leaf frame only */
	EF_MARKER_NO_PROGRESS = 9, /* the stack pointer did not move up */
	EF_MARKER_COMPAT = 10,     /* a 32-bit process */
	EF_MARKER_VMA_RACE = 11,   /* the mapping changed while it was read */
	EF_MARKER_MAX
};

enum ef_record_type {
	EF_RECORD_SAMPLE = 1,
	EF_RECORD_TRACE = 2,
	EF_RECORD_PROCESS = 3,
	EF_RECORD_EXIT = 4,
	EF_RECORD_FILE = 5,
	EF_RECORD_RUNTIME = 6,
	EF_RECORD_THREAD = 7,
	EF_RECORD_FUNCTION = 8,
};

/* Identity of one execution of a process: an exec or a reused PID makes another. */
struct ef_process_id {
	__u32 tgid;
	__u32 exec_id;
	__u64 start_boottime_ns;
};

/* One event; its trace was sent before, unless the trace's output failed. */
struct ef_sample {
	__u16 type;
	__u16 origin; /* enum ef_origin: what the value measures */
	__u32 cpu;
	__u64 trace_hash;
	__u64 ktime_ns; /* CLOCK_MONOTONIC */
	__u64 value;    /* in the unit of its profile type; 1 for a timer tick */
	struct ef_process_id process;
	__u32 tid;
	__u32 label_bytes; /* at the end of the record: see struct ef_label */
	char comm[EF_COMM_SIZE];
};

/* Labels of one sample have so many bytes at most. A label with a longer key is left out; a longer value is cut. */
#define EF_LABELS_BYTES 1024
#define EF_LABEL_KEY_BYTES 100
#define EF_LABEL_VALUE_BYTES 256

/* A label that the program has set for what it does: this, its key, its value; the next one begins at a multiple of 4. */
struct ef_label {
	__u8 kind; /* enum ef_label_kind */
	__u8 is_cut;
	__u8 key_bytes;
	__u8 reserved;
	__u16 value_bytes;
	__u16 reserved2;
};

enum ef_label_kind {
	EF_LABEL_TEXT = 1,         /* key and value are the program's own */
	EF_LABEL_GOROUTINE = 2,    /* the value is the ID, 64 bits */
	EF_LABEL_BEAM_PROCESS = 3, /* the same, of a process of Erlang's, as BEAM has it */
	EF_LABEL_BEAM_NAME = 4,    /* the value is the name under which that is registered */
	/* the value is a struct ef_thread_context_record and the attributes of that */
	EF_LABEL_THREAD_CONTEXT = 5,
};

/* Flags of a trace. */
#define EF_TRACE_OF_PROCESS 1  /* has frames that mean something in this process only */
#define EF_TRACE_INTERPRETED 2 /* has frames whose names are in the process's memory */

struct ef_trace {
	__u16 type;
	__u16 kernel_frames;
	__u16 user_frames;
	__u16 words;
	__u32 flags;
	__u32 reserved;
	struct ef_process_id process; /* that it was met in first; others may share it, see its flags */
	__u64 trace_hash;
	__u64 runtime_file; /* key: of the outermost frames that stand in place of native ones; 0: there are none */
	__u64 frames[EF_MAX_WORDS];
};

/* Flags of a process. */
#define EF_PROCESS_NO_FILE 1 /* it is a kernel thread, or has ended but for its last steps */

struct ef_process {
	__u16 type;
	__u16 path_bytes;
	__u16 cgroup_bytes;
	__u16 flags;
	__u32 parent_tgid;
	__u32 uid;
	struct ef_process_id process;
	__u64 ktime_ns;
	char comm[EF_COMM_SIZE];
	/* components leaf first, each NUL-terminated: the executable's path, then the cgroup's */
	char names[EF_PATH_BYTES + EF_CGROUP_BYTES];
};

struct ef_exit {
	__u16 type;
	__u16 reserved;
	__u32 reserved2;
	__u64 ktime_ns;
	struct ef_process_id process;
};

struct ef_file {
	__u16 type;
	__u16 path_bytes;
	__u32 tgid;
	__u64 key;
	__u64 inode;
	__u64 size;
	__u64 ctime_ns;
	__u32 device; /* the kernel's encoding: major << 20 | minor */
	__u32 generation;
	__u64 vma_start;
	__u64 vma_end;
	__u64 vma_offset; /* bytes */
	char path[EF_PATH_BYTES];
};

/* User space is asked to attach to a runtime that was detected in a process, or to say whose the code is that no file
 * backs and no known runtime takes: see ebpf/attach.h. */
struct ef_runtime_detected {
	__u16 type;
	__u16 is_attached; /* what user space found before does not suffice */
	__u32 runtime;     /* enum ef_runtime; EF_RUNTIME_NONE: which ones does the process have? */
	struct ef_process_id process;
	__u64 key; /* of the runtime's file; 0: what was seen is code that no file backs, and the file is to be found */
	__u64 base; /* address in the process at which offset 0 of the file would be; 0 without a file */
};

#define EF_FUNCTION_NAME_BYTES 256
#define EF_FUNCTION_FILE_BYTES 1024
#define EF_FUNCTION_TEXT_BYTES (2 * EF_FUNCTION_NAME_BYTES + EF_FUNCTION_FILE_BYTES)

/* The names of a runtime's function, ahead of the first trace that has it: the function may be gone before user space could
 * read them. Functions whose texts do not fit are left out. */
struct ef_function {
	__u16 type;
	__u8 frame_kind; /* enum ef_frame_kind, of the runtime */
	__u8 kind;       /* as the runtime numbers them */
	__u16 text_bytes;
	__u16 class_bytes; /* of each text, with its NUL; 0: there is none */
	__u16 name_bytes;
	__u16 file_bytes;
	__u32 cookie; /* low half of the frame's second word */
	struct ef_process_id process;
	__u64 operand; /* of the frame's header word */
	__u32 first_line;
	__u32 last_line;
	char texts[EF_FUNCTION_TEXT_BYTES]; /* class, name, file */
};

/*
 * The table of one file: a byte image in blocks of 16 KiB, keyed by offset in the file.
 *
 *   directory at 0:  struct ef_page for each 4 KiB page of the file from first_page on
 *   rules_at:        struct ef_rule; rule 0 is EF_RULE_INVALID
 *   rows_at:         u32 rows: low 12 bits of the address | rule << 16, sorted in their page; the first row
 *                    of a page starts at its offset 0. The rows of one page never straddle two blocks.
 */
#define EF_BLOCK_BITS 14
#define EF_BLOCK_BYTES (1 << EF_BLOCK_BITS)
#define EF_BLOCK_ROWS (EF_BLOCK_BYTES / 4)
#define EF_PAGE_BITS 12

struct ef_page {
	__u32 first_row;
	__u16 rows; /* 0: nothing is known of this page */
	__u16 reserved;
};

enum ef_rule_kind {
	EF_RULE_INVALID = 0,       /* no unwind information here */
	EF_RULE_CFA = 1,           /* CFA = cfa_reg + cfa_offset */
	EF_RULE_CFA_DEREF = 2,     /* CFA = *(cfa_reg + cfa_offset) + cfa_offset2 */
	EF_RULE_PLT = 3,           /* CFA = rsp + cfa_offset + ((rip & 15) >= cfa_offset2 ? 8 : 0) */
	EF_RULE_SIGNAL = 4,        /* registers are in the signal frame */
	EF_RULE_STOP = 5,          /* the return address is undefined: the root */
	EF_RULE_FRAME_POINTER = 6, /* CFA = fp + cfa_offset, which may lie below the stack pointer */
	EF_RULE_CFA_VG = 7, /* arm64: CFA = cfa_reg + cfa_offset + cfa_offset2 * VG, the vector length / 8 */
	/* CFA = *(*(cfa_reg + cfa_offset) + low half of cfa_offset2) + its high half, both signed: OCaml 5's fibers */
	EF_RULE_CFA_DEREF_TWICE = 8,
	/* The caller of Go's scheduler stack is the goroutine that the thread has left; without one the stack is whole:
	 * g = *(thread pointer + cfa_offset), m = *(g + ra_offset), goroutine = *(m + cfa_offset2), whose saved sp and
	 * pc stand behind its ra_offset; fp is saved at fp_offset */
	EF_RULE_GOROUTINE = 9,
	EF_RULE_UNKNOWN = 10, /* nobody can tell the caller, least of all the frame pointer */
};

enum ef_value_kind {
	EF_VALUE_SAME = 0, /* fp keeps its value */
	EF_VALUE_UNDEFINED = 1,
	EF_VALUE_CFA = 2,      /* saved at CFA + offset */
	EF_VALUE_REGISTER = 3, /* in register number `offset` (return address only) */
	EF_VALUE_FRAME = 4,    /* saved at fp + offset */
	EF_VALUE_STACK = 5,    /* saved at sp + offset */
};

/*
 * Where the caller's value of one callee-saved register is. On x86-64 that is rbx: some CFAs count from it, such as that of
 * the dynamic linker's trampoline. On arm64 it is x20, in which BEAM has the Erlang stack. Rules say it only in files where
 * some CFA counts from it, and in BEAM's own.
 */
enum ef_callee_saved {
	EF_CALLEE_SAVED_UNKNOWN = 0,
	EF_CALLEE_SAVED_SAME = 1,
};

/* Flag of cfa_reg: the caller was interrupted, or left for another stack. Its program counter is the next instruction that
 * it runs, not a return address (the letter S of a CIE). Signal frames do not need the flag. */
#define EF_RULE_INTERRUPTED 128

struct ef_rule {
	__u8 kind;
	__u8 cfa_reg; /* DWARF register number of the architecture | EF_RULE_INTERRUPTED */
	__u8 fp_kind;
	__u8 ra_kind;
	__s32 cfa_offset;
	__s32 cfa_offset2; /* of EF_RULE_CFA: enum ef_callee_saved, or where the callee-saved register is saved, CFA + a negative offset */
	__s16 fp_offset;
	__s16 ra_offset;
};

enum ef_file_state {
	EF_FILE_PENDING = 0, /* the file event is out */
	EF_FILE_TABLE = 1,
	EF_FILE_NO_TABLE = 2, /* opened, but it has nothing to unwind with */
	EF_FILE_MEMORY = 3,   /* shared memory that a process puts code into: no file at all */
};

/* Value of the `files` map; user space makes the table and then fills the entry in one update. */
struct ef_file_entry {
	__u32 state;
	__u32 table;
	__u32 first_page;
	__u32 page_count;
	__u32 rules_at;
	__u32 rows_at;
	__u64 last_used_ns; /* written by BPF, for eviction by least use */
	__u32 runtime;      /* enum ef_runtime: its code runs interpreted functions, see the runtime's own map */
	__u32 reserved;
};

/* Key and value of the map `process_code`: executable memory of a process that no file backs, for which user space has
 * found a table: that of the file whose code the process has moved there, or one of what its JIT has registered. */
struct ef_code_key {
	__u32 tgid;
	__u32 reserved;
	__u64 start;
};

struct ef_code {
	struct ef_process_id process;
	__u64 key;
	__u64 delta;  /* added to an address it gives the offset in the file */
	__u32 is_jit; /* the key is only that of a table: names go by the address */
	__u32 reserved;
};

enum ef_runtime {
	EF_RUNTIME_NONE = 0,
#define RUNTIME(name, folder, map, owns) EF_RUNTIME_##name,
#include "runtimes.def"
#undef RUNTIME
	EF_RUNTIME_MAX
};
_Static_assert(EF_FRAME_MARKER + 1 == EF_FRAME_PYTHON, "frames of runtimes follow the others");
_Static_assert(EF_RUNTIME_MAX < 31, "a set of runtimes, and of one thing more, is a word of 32 bits");

/*
 * Value of the map `process_runtimes`, by struct ef_process_id: which runtimes were detected in an execution of a
 * process, and in which file. BPF notes a runtime when it comes to code of its file; where it comes to code that no
 * file backs, and nothing that is noted takes it, it asks user space once what the process has (ef_runtime_detected without a
 * runtime). The answer is final: a runtime that is loaded later is noted at its file.
 */
struct ef_process_runtimes {
	__u32 detected; /* bit 1 << enum ef_runtime */
	__u32 is_answered;
	__u64 ask_again_ns;
	__u64 wait_ns;
	__u64 files[EF_RUNTIME_MAX];  /* keys */
	__u64 deltas[EF_RUNTIME_MAX]; /* of their mappings, where BPF has come to them; else 0 */
};

/* The values of each map by process that user space fills begin with this: see ebpf/attach.h. */
struct ef_attachment {
	__u64 file_key; /* of the runtime */
	__u64 ask_again_ns;
	__u64 wait_ns;
	__u32 is_attached; /* 0: user space was asked, what follows is empty */
	__u32 reserved;
};

/* The weight 1. A sampled wait or event stands for as many as its weight says; weights have 16 bits behind the point. */
#define EF_WEIGHT_ONE 65536

/* A number that an event has. Registers go by their DWARF numbers. */
struct ef_event_field {
	__u32 kind;     /* enum ef_event_field_kind */
	__u32 argument; /* number of the tracepoint's argument, or of the register; of memory: of its base register */
	__s64 offset; /* of the member or memory; of a register its lowest bit; of a constant its value */
	__u32 size;   /* 1, 2, 4 or 8 */
	__u32 is_signed;
	__u32 index; /* of memory: the register that is added `scale` times */
	__u32 scale;
};

enum ef_event_field_kind {
	EF_EVENT_FIELD_NONE = 0,
	EF_EVENT_FIELD_ARGUMENT = 1,
	EF_EVENT_FIELD_MEMBER = 2, /* of the kernel's struct that the argument points to */
	EF_EVENT_FIELD_REGISTER = 3,
	EF_EVENT_FIELD_MEMORY = 4, /* of the process */
	EF_EVENT_FIELD_CONSTANT = 5,
};

enum ef_event_comparison {
	EF_EVENT_ANY = 0,
	EF_EVENT_EQUAL = 1,
	EF_EVENT_NOT_EQUAL = 2,
	EF_EVENT_LESS = 3,
	EF_EVENT_GREATER = 4,
};

/* One event of --event, as the programs of its object have it. */
struct ef_event {
	__u32 number; /* its origin is EF_ORIGIN_MAX and this */
	__u32 budget; /* stacks a CPU and second */
	struct ef_event_field value;
	struct ef_event_field filter;
	__s64 operand;
	__u32 comparison; /* enum ef_event_comparison: of the filter's field with the operand */
	__u32 reserved;
	__u64 scale; /* of allocations: the stack of one with fewer bytes is taken with a probability of bytes / scale at most */
};

#define EF_MAX_LIVE_ALLOCATIONS 32768

/* Set before load, constant afterwards: the verifier removes what is switched off. */
struct ef_config {
	__u32 has_task_pt_regs; /* the kernel has bpf_task_pt_regs (5.15 and later) */
	__u32 max_user_frames;
	__u32 targets; /* enum ef_targets */
	__u32 send_idle;
	__u32 wake_bytes;               /* wake user space when that much waits in the ring buffer */
	__u32 user_regs_from_stack_top; /* where bpf_task_pt_regs is missing: pt_regs end this far below... */
	__u32 thread_size;              /* ...the end of the kernel stack, which is this large */
	__u32 runtimes;                 /* bit 1 << enum ef_runtime: those that are loaded */
	__u32 page_shift;               /* of the kernel's pages; used where the processor leaves a choice */
	__u64 code_address_mask;        /* bits of a return address that are the address; arm64 */
	__u32 can_defer;       /* the kernel has bpf_task_work (6.18): EF_SAMPLER_SLOT_DEFER may be filled */
	__u32 context;         /* enum ef_context: where the programs of this object run */
	__u32 wait_weight;     /* of each wait, where all are taken with one probability; 0: see wait_budget */
	__u32 wait_budget;     /* stacks of waits a CPU and second */
	__u64 scheduler_start; /* code of __schedule(), 0: not known */
	__u64 scheduler_end;
	__u32 leaves_labels; /* labels are not read */
	__u32 goroutine_ids;
	__u32 wait_state; /* enum ef_thread_state: waits of that alone are sampled; EF_THREAD_RUNNING: all */
	__u32 own_tgid;   /* of the agent: what it starts is not chosen with its parents */
	struct ef_event event;
};

#define EF_MAX_EVENTS 32

/* Of each event that is a tracepoint: the kernel's code that calls BPF, the map `event_callers`; 0: not known */
struct ef_event_caller {
	__u64 start;
	__u64 end;
};

/* Elements of the map `event_totals`, of each event these. */
enum ef_event_total {
	EF_EVENT_TOTAL_EVENTS = 0, /* that pass the filter, and are of a chosen process */
	EF_EVENT_TOTAL_VALUES = 1, /* the sum of theirs */
	EF_EVENT_TOTAL_SAMPLES = 2,
	EF_EVENT_TOTAL_MAX
};

/* What the processes in the map `targets`, and those that they fork, are. */
enum ef_targets {
	EF_TARGETS_NONE = 0, /* nothing: all are sampled */
	EF_TARGETS_CHOSEN = 1,
	EF_TARGETS_EXCLUDED = 2,
};

/* Elements of the map `scratch`: see memory.h. */
enum ef_context {
	EF_CONTEXT_TICK = 0,     /* the timer's interrupt */
	EF_CONTEXT_EVENT = 1,    /* where a tick may interrupt */
	EF_CONTEXT_DEFERRED = 2, /* in the sampled thread, on its way to user space */
	EF_CONTEXT_SWITCH = 3,   /* in the scheduler, which may interrupt an event */
	EF_CONTEXT_MAX
};

/* Slots of the map `samplers`. */
enum ef_sampler_slot {
	EF_SAMPLER_SLOT_SAMPLE = 0, /* every tick jumps to it */
	EF_SAMPLER_SLOT_DEFER = 1,  /* stacks of which a part is not in memory; empty until there was one */
	EF_SAMPLER_SLOT_MAX
};

/* Hashes of traces that user space has, in the set of their lower bits; 0: empty. User space takes out what it forgets. */
#define EF_SEEN_WAYS 8
#define EF_SEEN_SETS 4096

struct ef_seen_set {
	__u64 hashes[EF_SEEN_WAYS];
};

#define EF_FUNCTION_SETS 1024

/* Identity last sent of a process: another one in a sample makes BPF send the process again. */
struct ef_known_process {
	__u64 start_boottime_ns;
	__u32 exec_id;
	__u32 owner; /* tgid + 1; 0: empty */
};

#define EF_PROCESS_WAYS 4
#define EF_PROCESS_SETS 4096

struct ef_process_set {
	struct ef_known_process ways[EF_PROCESS_WAYS];
};

/* The key under which the vDSO's table is registered; its offsets count from the start of the vDSO. */
#define EF_VDSO_KEY 1ULL

#endif
