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
	__u32 label_bytes; /* of the present wait, in the map `wait_labels` */
	__u32 reserved;
	__u32 ended_version;
};

/* A sample of a wait with labels. */
struct ef_labelled_wait {
	struct ef_wait wait;
	__u8 labels[EF_LABELS_BYTES];
};

#endif
