/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the reader of Go's labels and agent/interpreters/go share. Go's frames are native ones. */
#ifndef EF_GO_RECORDS_H
#define EF_GO_RECORDS_H

#include "../records.h"

/* Where a thread has its g, the goroutine or stack of the scheduler that it runs. */
enum ef_go_access {
	EF_GO_THREAD_LOCAL = 0, /* at `g` bytes from the thread pointer */
	EF_GO_SLOT = 1,         /* the same, but the loader has left that number at `g` */
	EF_GO_REGISTER = 2,     /* in register x28 */
};

/* Value of the map `go_files`, by file key. Members of Go's structs are offsets in them. */
struct ef_go {
	__s64 g; /* of a slot: its ELF address less the difference between address and file offset of the code */
	__u16 curg;   /* in m: the goroutine that it works for */
	__u16 labels; /* in g; 0: the program can't set any */
	__u16 goid;   /* in g */
	__u8 access;  /* enum ef_go_access */
	__u8 is_map;  /* labels are a map; else a slice, as since Go 1.24 */
};

#endif
