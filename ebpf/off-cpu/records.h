/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What is known of threads and their waits, with --off-cpu: see ebpf/off-cpu.bpf.c. */
#ifndef EF_OFF_CPU_RECORDS_H
#define EF_OFF_CPU_RECORDS_H

#include "../records.h"

/* What a thread does, or waits for. Append only. */
enum ef_thread_state {
	EF_THREAD_RUNNING = 0,
	EF_THREAD_RUNNABLE = 1,   /* preempted or woken: it waits for a CPU */
	EF_THREAD_DISK = 2,       /* for a block device, or a file system */
	EF_THREAD_LOCK = 3,       /* for a futex, a semaphore or the lock of a file */
	EF_THREAD_NETWORK = 4,    /* for a socket, a pipe, a terminal, or any of several */
	EF_THREAD_SLEEP = 5,      /* for a time of its own choice */
	EF_THREAD_PAGE_FAULT = 6, /* for a page of memory */
	EF_THREAD_OTHER = 7,      /* for a child, a signal, something in the kernel */
};
#define EF_THREAD_STATES 8

/* Who has ended a wait; all 0: an interrupt, or nobody yet. */
struct ef_waker {
	__u32 tid;
	__u32 tgid;
	char comm[EF_COMM_SIZE];
};

/* A sample of a wait: others have no more than labels behind the sample. */
struct ef_wait {
	struct ef_sample sample;
	__u32 state; /* enum ef_thread_state: in which the value was measured */
	__u32 reserved;
	struct ef_waker waker;
};

/* The stack of a wait that was taken while it lasted: see ebpf/waiting.bpf.c. */
struct ef_late_stack {
	__u64 trace_hash;
	__u64 since_ns; /* of the wait that it belongs to */
	__u64 from_ns;  /* what is waited from then on has this stack, and stands for itself alone */
	__u32 label_bytes;
	__u32 reserved;
};

/*
 * Value of the map `threads`, by TID. The times are exact: each switch adds to them. User space reads the value while BPF
 * writes it: it is whole if both versions are the same.
 */
struct ef_thread {
	__u16 type;  /* EF_RECORD_THREAD: sent when the thread ends, or runs another program */
	__u16 state; /* enum ef_thread_state */
	__u32 tid;
	__u32 begun_version;
	__u32 weight;      /* of the present wait */
	__u64 first_ns;    /* since when it is counted */
	__u64 since_ns;    /* since when it is in that state */
	__u64 woken_ns;    /* when its wait has ended, 0: it has not; since then it is runnable */
	__u64 reported_ns; /* up to then samples of the present wait are sent already */
	__u64 trace_hash;  /* where the present wait began; 0: no stack was taken */
	__u64 exec_ns;     /* what the scheduler had counted of it when it came to its CPU last */
	__u64 times_ns[EF_THREAD_STATES];
	__u32 waits[EF_THREAD_STATES];    /* how many began */
	__u32 usual_ns[EF_THREAD_STATES]; /* how long such waits take, for the next choice */
	struct ef_process_id process;
	struct ef_waker waker;
	char comm[EF_COMM_SIZE];
	__u32 cpu;
	__u32 label_bytes;  /* of the present wait, in the map `wait_labels` */
	__u16 is_stack_cut; /* for want of a table or of a page: another one taken while it waits may be whole */
	__u16 is_from_before; /* it waited already when it was met */
	struct ef_late_stack late;
	__u32 reserved;
	__u32 ended_version;
};

/* What becomes of a stack that user space asks for. Append only. */
enum ef_late_result {
	EF_LATE_ASKED = 0,
	EF_LATE_NO_PAGE = 1,  /* user space has to read `page` first */
	EF_LATE_NO_TABLE = 2, /* unwind information of a file on it is not ready yet */
	EF_LATE_OVER = 3,     /* the thread waits no more */
	EF_LATE_TAKEN = 4,
	EF_LATE_FAILED = 5, /* it could not be sent */
};

/* Value of the map `late_stacks`, by TID. */
struct ef_late_request {
	__u64 begin_ns;    /* what a thread waited before that, without a stack, is left out */
	__u64 since_ns;    /* of the wait */
	__u64 page;        /* address */
	__u64 sp;          /* the stack goes on from there */
	__u32 result;      /* enum ef_late_result */
	__u16 is_last_try; /* a stack that is cut for want of a table is taken as well */
	__u16 is_again;    /* in place of the one that there is */
};

#define EF_LATE_REQUESTS 16
#define EF_KEPT_PAGES 256
#define EF_KEPT_PAGE_BYTES 4096

/* Key of the map `pages`, whose values are the bytes of a page and a u64: not 0 where it can't be read. */
struct ef_page_key {
	__u64 address;
	__u32 tgid;
	__u32 reserved;
};

/* A sample of a wait with labels. */
struct ef_labelled_wait {
	struct ef_wait wait;
	__u8 labels[EF_LABELS_BYTES];
};

#endif
