/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the .NET unwinder keeps for the length of a sample. */
#ifndef EF_DOTNET_STATE_H
#define EF_DOTNET_STATE_H

#include "../kernel.h"
#include "records.h"

#define DOTNET_SECTION_WORDS 16
#define DOTNET_HEADER_BYTES 128
/* An UNWIND_INFO with its first codes */
#define DOTNET_UNWIND_SLOTS 32

struct dotnet_runtime_function {
	u32 begin;
	u32 end;
	u32 unwind;
};

struct dotnet_unwind_info {
	u8 version_and_flags;
	u8 prologue_bytes;
	u8 code_count;
	u8 frame_register;
	u16 codes[DOTNET_UNWIND_SLOTS];
};

/* Sections that a sample has come to: of most stacks, all. */
#define DOTNET_KEPT 4

struct dotnet_kept_section {
	u64 begin;
	u64 end;
	u64 section;
};

/* What is known of the sampled process and frame. */
struct ef_dotnet_state {
	u64 is_looked_up;
	struct ef_dotnet clr;
	/* the section that the last look-up found */
	u64 begin;
	u64 end;
	u64 kind; /* enum dotnet_section */
	u64 is_collectible;
	u64 map_base;
	u64 map;
	u64 module;
	u64 functions;
	u64 function_count;
	/* of a list, which is long */
	u64 kept_count;
	struct dotnet_kept_section kept[DOTNET_KEPT];
	/* the frame's function */
	u64 code; /* where its method begins */
	u64 cookie;
	u64 header; /* RealCodeHeader */
	u64 is_unwind_unread;
	struct dotnet_runtime_function function;
	struct dotnet_unwind_info unwind;
	u64 words[DOTNET_SECTION_WORDS];
	u64 names[EF_DOTNET_NAME_WORDS];
	u8 bytes[DOTNET_HEADER_BYTES];
	u64 pair[2];
	/* what the walk over the codes has come to */
	u64 sp;
	u64 fp;
	u64 at;
	u64 is_done;
	struct ef_dotnet nothing; /* never written */
};

#endif
