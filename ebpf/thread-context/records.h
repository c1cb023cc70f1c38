/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the reader of thread contexts and agent/thread-contexts share. */
#ifndef EF_THREAD_CONTEXT_RECORDS_H
#define EF_THREAD_CONTEXT_RECORDS_H

#include "../records.h"

/* Loaded on demand, as runtimes are: behind the last of those in the set ef_config.runtimes. */
#define EF_PART_THREAD_CONTEXTS 31

/* What the thread-local variable holds. */
enum ef_thread_context_kind {
	EF_THREAD_CONTEXT_POINTER = 1, /* the address of the record */
	EF_THREAD_CONTEXT_NODE = 2,    /* where Node has it: struct node_context in read.h */
};

/* Value of the map `thread_contexts`, by process: where its threads have the variable, and what leads to their records. */
struct ef_thread_context {
	__s64 offset; /* of the variable: from the thread pointer, or in its module's block */
	__u32 module; /* number that the loader has given the module; 0: its block is where the thread pointer is */
	__u8 kind;    /* enum ef_thread_context_kind */
	__u8 is_musl;
	/* offsets in Node's objects */
	__u16 table;        /* JSMap: its table */
	__u16 counts;       /* table: how many elements and buckets it has */
	__u16 wrapped;      /* wrapper: what it wraps */
	__u16 wrapped_else; /* where that is 0; 0: nowhere */
	__u16 record;       /* what is wrapped: the pointer to the record */
	__u8 is_indirect;   /* that is so; else the wrapper has the pointer itself */
	__u8 reserved[7];
};

/* With what a record begins, as OTEP 4947 has it; then the attributes: key (a number), bytes of the value, value. */
struct ef_thread_context_record {
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 is_valid; /* 1: yes */
	__u8 flags;
	__u16 attribute_bytes;
};

/* Of a whole record, which its writers keep within that, and of its attributes */
#define EF_CONTEXT_RECORD_BYTES 640
#define EF_CONTEXT_ATTRIBUTE_BYTES (EF_CONTEXT_RECORD_BYTES - sizeof(struct ef_thread_context_record))

#endif
