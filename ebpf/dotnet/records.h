/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the .NET unwinder and agent/interpreters/dotnet share. */
#ifndef EF_DOTNET_RECORDS_H
#define EF_DOTNET_RECORDS_H

#include "../records.h"

/* EF_FRAME_DOTNET: the operand is enum ef_dotnet_code << 48 | address of where the function's code begins. The second word
 * is the offset in that code << 32 | a cookie: the low bits of where in memory what it belongs to stands. */
enum ef_dotnet_code {
	EF_DOTNET_JITTED = 0, /* cookie: MethodDesc; of an assembly that may be unloaded a hash with its name */
	EF_DOTNET_PRECOMPILED = 1, /* cookie: Module */
	EF_DOTNET_STUB = 2,        /* no cookie: code of the runtime's own; the offset is 0 */
};
/* Of the names around an assembly's own: so many words in all, from this many bytes before it on */
#define EF_DOTNET_NAME_WORDS 6
#define EF_DOTNET_NAME_BEFORE 16
/* How far right a cookie's address is shifted */
#define EF_DOTNET_COOKIE_SHIFT 3

/* Value of the map `dotnet_clrs`, by process: agent/interpreters/dotnet/layout.ts says what they are. Byte offsets in
 * the struct that is named, where nothing else is said. */
struct ef_dotnet {
	struct ef_attachment attachment;
	__u64 ranges;        /* address of the first level of the RangeSectionMap, or of the pointer to a list */
	__u32 code_end;      /* offset in the runtime's file where its own code ends: an image may stand behind */
	__u16 section_flags; /* RangeSection */
	__u16 section_heap;  /* RangeSection: CodeHeapListNode */
	__u16 section_module;     /* RangeSection: Module */
	__u16 heap_map_base;      /* CodeHeapListNode: where the code begins that its nibble map covers */
	__u16 heap_map;           /* CodeHeapListNode: the nibble map */
	__u16 method_desc;        /* RealCodeHeader */
	__u16 unwind_count;       /* RealCodeHeader: number of the RUNTIME_FUNCTIONs */
	__u16 unwind_infos;       /* RealCodeHeader: the first of them */
	__u16 module_precompiled; /* Module: ReadyToRunInfo */
	__u16 functions;          /* ReadyToRunInfo: table of RUNTIME_FUNCTIONs */
	__u16 function_count;     /* ReadyToRunInfo */
	__u16 has_list;           /* the sections are a list (.NET 6 and 7) */
	__u16 has_map_pointers;   /* the nibble map has an entry for each 256 bytes of a large method (.NET 10) */
	__u16 chunk_index;        /* MethodDesc: its place in its MethodDescChunk, units of method_unit bytes */
	__u16 method_unit;
	__u16 chunk_bytes;  /* MethodDescChunk, in front of its first MethodDesc */
	__u16 chunk_table;  /* MethodDescChunk: MethodTable */
	__u16 table_module; /* MethodTable: Module */
	__u16 simple_name;  /* Module: address of its assembly's name, which stands among other names */
};

#endif
