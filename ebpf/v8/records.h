/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the V8 unwinder and agent/interpreters/v8 share. */
#ifndef EF_V8_RECORDS_H
#define EF_V8_RECORDS_H

#include "../records.h"

/* EF_FRAME_V8: the operand is enum ef_v8_tier << 48 | address of the SharedFunctionInfo.
 * What a JavaScript frame runs, and the second word of it. The cookie tells functions apart that follow each other
 * at one address. */
enum ef_v8_tier {
	EF_V8_INTERPRETED = 0, /* bytecode offset as V8 keeps it << 32 | cookie of the function */
	EF_V8_JIT = 1,         /* cookie of function and code << 48 | program counter; the function may be 0 */
	EF_V8_FUNCTION = 2,    /* cookie of the function: where in it is not known, as in a built-in one */
	EF_V8_STUB = 3,        /* none, or WebAssembly's instance: type of the frame << 48 | program counter */
};

/* Value of the map `v8_files`, by file key. Byte offsets in V8's objects. */
struct ef_v8 {
	__u64 blob_start; /* offset in the file of the embedded built-in functions */
	__u64 blob_length;
	__u16 bytecode_array_type;
	__u8 function_shared;
	__u8 shared_name;
	__u8 shared_script;
	__u8 wasm_frame; /* type of frame of WebAssembly code */
	__u8 reserved[2];
};

#endif
