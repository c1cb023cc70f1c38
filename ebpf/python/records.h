/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the CPython unwinder and agent/interpreters/python share. */
#ifndef EF_PYTHON_RECORDS_H
#define EF_PYTHON_RECORDS_H

#include "../records.h"

/* EF_FRAME_PYTHON: the operand is the address of the code object, the next word byte offset << 32 | cookie. */

/* Where a thread keeps its Python thread state. Addresses, here and in code_type, are ELF addresses less the
 * difference between address and file offset of the interpreter loop: less the delta of its mapping they are
 * addresses of the process. */
enum ef_python_access_kind {
	EF_PYTHON_NOWHERE = 0,
	EF_PYTHON_KEY = 1,    /* the number of a pthread key stands at `at` */
	EF_PYTHON_OFFSET = 2, /* at thread pointer + `at` */
	EF_PYTHON_MODULE = 3, /* module ID and offset in it stand at `at`; `add` is added */
	EF_PYTHON_GLOBAL = 4, /* at `at`, of whichever thread runs: thread_id in it says whether it is this one */
	EF_PYTHON_DESCRIPTOR = 5, /* arm64: as MODULE, by a descriptor at `at` that the loader has filled in */
};

struct ef_python_access {
	__u32 kind;
	__s32 add;
	__s64 at;
};

enum ef_python_instruction_kind {
	EF_PYTHON_BYTES = 0,   /* i32, in bytes */
	EF_PYTHON_UNITS = 1,   /* i32, in units of two bytes */
	EF_PYTHON_POINTER = 2, /* address inside the code object */
};

enum ef_python_boundary_kind {
	EF_PYTHON_EACH = 0,
	EF_PYTHON_ENTRY = 1,
	EF_PYTHON_OWNER = 2,
};

#define EF_PYTHON_RANGES 4

struct ef_python_range {
	__u64 start; /* offset in the file */
	__u64 length;
};

/* Value of the map `python_files`, by file key: agent/interpreters/python/layout.ts says what they are. */
struct ef_python {
	struct ef_python_range ranges[EF_PYTHON_RANGES];
	struct ef_python_access bound;
	struct ef_python_access current;
	__s64 code_type;
	__u8 is_musl;
	__u8 has_key_flag; /* an int before the key says whether it is valid (3.7 and later) */
	__u8 instruction;
	__u8 boundary;
	__u8 is_frame_in_cframe;
	__u8 code_tag_mask;
	__u8 frame_bytes; /* as many as the offsets below need */
	__u8 code_bytes;
	__u8 thread_frame;
	__u8 thread_cframe; /* 0: there are no cframes that link to the C stack */
	__u8 cframe_frame;
	__u8 cframe_previous;
	__u8 frame_previous;
	__u8 frame_code;
	__u8 frame_instruction;
	__u8 frame_boundary;
	__u8 frame_thread_local_index;
	__u8 object_type;
	__u8 code_flags;
	__u8 code_first_line;
	__u8 code_filename;
	__u8 code_name;
	__u8 code_line_table;
	__u8 code_start;
	__u8 code_thread_local;
	__u8 thread_id;
	__u8 thread_next;
	__u8 thread_base_frame; /* 3.15 and later: every list ends in a frame that runs nothing; 0: none does */
	__u16 interpreter_next;
	__u16 interpreter_threads;
	__s64 interpreters; /* variable with the first of a process's interpreters; 0: unknown */
};

#endif
