/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the HotSpot unwinder and agent/interpreters/hotspot share. */
#ifndef EF_HOTSPOT_RECORDS_H
#define EF_HOTSPOT_RECORDS_H

#include "../records.h"

/* EF_FRAME_HOTSPOT: the operand is enum ef_hotspot_code << 48 | address of what it says.
 * What a frame of Java runs, and the second word of it. */
enum ef_hotspot_code {
	EF_HOTSPOT_INTERPRETED = 0, /* Method: bytecode index or EF_HOTSPOT_NO_BCI << 32 | cookie of the method */
	EF_HOTSPOT_COMPILED = 1,    /* nmethod: offset in its code << 32 | number of the compilation */
	EF_HOTSPOT_STUB = 2,        /* CodeBlob: offset in its code << 32 | cookie of its name */
};
#define EF_HOTSPOT_NO_BCI 65535
#define EF_HOTSPOT_HEAPS 16
/* The head of a CodeBlob, as much of it as is read */
#define EF_HOTSPOT_BLOB_BYTES 384

struct ef_hotspot_heap {
	__u64 start;
	__u64 length;
	__u64 segments; /* address of its segment map */
};

/* Value of the map `hotspot_jvms`, by process: agent/interpreters/hotspot/layout.ts says what they are. Byte offsets
 * in a CodeBlob or nmethod, where nothing else is said; 0: it does not have the field. */
struct ef_hotspot {
	struct ef_attachment attachment;
	struct ef_hotspot_heap heaps[EF_HOTSPOT_HEAPS];
	__u8 heap_count;
	__u8 segment_shift;
	__u8 block_header;       /* bytes before each CodeBlob */
	__u8 has_code_offset;    /* code_begin is an offset from the start of the CodeBlob, else an address */
	__u8 has_deopt_offset;   /* the same of deopt and deopt_method_handle */
	__u8 has_short_complete; /* frame_complete has 16 bits, else 32 */
	__u8 bcp_slot;           /* words below fp */
	__u8 leaves_breadcrumbs; /* arm64: calls of C push 16 bytes first */
	__u8 symbol_shift;       /* bits of a Symbol's first word up to the end of its references' number */
	__u8 reserved;
	__u16 name;
	__u16 frame_size;
	__u16 frame_complete;
	__u16 code_begin;
	__u16 compile_id;
	__u16 deopt;
	__u16 deopt_method_handle;
	__u16 orig_pc;
	__u16 method_const;    /* in a Method */
	__u16 const_code_size; /* in a ConstMethod */
	__u16 const_bytes;     /* size of a ConstMethod: bytecodes follow */
	__u16 size;
	__u16 const_pool; /* in a ConstMethod: its ConstantPool */
	__u16 pool_class; /* in a ConstantPool: its Klass */
	__u16 class_name; /* in a Klass: its name, a Symbol */
};

#endif
