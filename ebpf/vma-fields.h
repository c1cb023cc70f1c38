/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What a VMA says, and who its file is. */
#ifndef EF_VMA_FIELDS_H
#define EF_VMA_FIELDS_H

#include "vmlinux.h"

struct vma_fields {
	u64 start, end, pgoff, file, flags;
};

struct file_identity {
	u64 inode, size, ctime_ns;
	u32 device, generation;
};

#endif
