/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Paths out of the kernel's own structures: each component NUL-terminated, leaf first; user space turns them
 * round. That needs no lock, no right-aligned buffer and no helper that perf_event programs lack. */
#ifndef EF_NAMES_H
#define EF_NAMES_H

#include "memory.h"

#define NAME_MAX_BYTES 256

/* The record that a path goes into. */
static __always_inline u8 *name_buffer(void)
{
	struct ef_scratch *s = get_scratch();
	return s ? s->record.bytes : NULL;
}

#define PROCESS_NAMES_AT offsetof(struct ef_process, names)
#define FILE_PATH_AT offsetof(struct ef_file, path)
_Static_assert(sizeof(struct ef_file) + 256 <= sizeof(struct ef_process) + 256, "the union's bytes cover a file");

/* The lengths so far live in the records themselves, at the same place in both: a value that was loaded from
 * memory has no history for the verifier to tell states apart by, so the loops below stay cheap to verify. */
#define USED_AT offsetof(struct ef_process, path_bytes)
#define CGROUP_USED_AT offsetof(struct ef_process, cgroup_bytes)
_Static_assert(FILE_PATH_AT > PROCESS_NAMES_AT, "a bit can add what lies between");
_Static_assert(offsetof(struct ef_file, path_bytes) == USED_AT, "both records keep their path's length there");

/* A component with its NUL, at that place of the record; returns its bytes. Global, so that it is verified once. */
__noinline int name_into_record(u64 at, u64 address)
{
	u8 *buffer = name_buffer();

	if (!buffer || at > sizeof(((struct ef_scratch *)0)->record.bytes) - NAME_MAX_BYTES)
		return 0;
	return KERNEL_READ_TEXT(buffer + at, NAME_MAX_BYTES, address);
}

/* The path of a file, at that place of the record; returns its bytes. */
static __always_inline u32 write_path(u64 at, u64 file)
{
	u8 *buffer = name_buffer();
	if (!buffer)
		return 0;
	volatile u16 *used = (void *)(buffer + USED_AT);
	u64 dentry = KERNEL_WORD(file, file, f_path.dentry);
	u64 vfsmount = KERNEL_WORD(file, file, f_path.mnt);
	u64 mount = vfsmount - FIELD_OFFSET(mount, mnt);

	*used = 0;
	for (int i = 0; i < EF_PATH_COMPONENTS; i++) {
		u64 parent = KERNEL_WORD(dentry, dentry, d_parent);
		u64 root = KERNEL_WORD(mount + FIELD_OFFSET(mount, mnt), vfsmount, mnt_root);
		if (dentry == root || dentry == parent) {
			u64 up = KERNEL_WORD(mount, mount, mnt_parent);
			if (up == mount || !up)
				return *used;
			dentry = KERNEL_WORD(mount, mount, mnt_mountpoint);
			mount = up;
			continue;
		}
		u64 offset = *used;
		if (offset >= EF_PATH_BYTES)
			break;
		int n = name_into_record(at + offset, KERNEL_WORD(dentry, dentry, d_name.name));
		if (n <= 0)
			return *used;
		*used += n;
		dentry = parent;
	}
	count(EF_COUNTER_path_cut);
	return *used;
}

static __noinline u64 kernfs_parent_6_15(u64 node)
{
	return KERNEL_WORD(node, kernfs_node___6_15, __parent);
}

static __noinline u64 kernfs_parent_5_10(u64 node)
{
	return KERNEL_WORD(node, kernfs_node, parent);
}

#define CGROUP_LEVELS 16

/* The cgroup path of a kernfs node, behind the path; the root has no name worth sending. */
static __always_inline u32 write_cgroup(u8 *buffer, u64 node)
{
	volatile u16 *path_used = (void *)(buffer + USED_AT);
	volatile u16 *used = (void *)(buffer + CGROUP_USED_AT);

	*used = 0;
	for (int i = 0; i < CGROUP_LEVELS; i++) {
		u64 parent = bpf_core_field_exists(struct kernfs_node___6_15, __parent) ?
				     kernfs_parent_6_15(node) :
				     kernfs_parent_5_10(node);
		if (!parent)
			return *used;
		u64 offset = *path_used + *used;
		OPAQUE(offset);
		if (offset > EF_PATH_BYTES + EF_CGROUP_BYTES)
			break;
		int n = name_into_record(PROCESS_NAMES_AT + offset, KERNEL_WORD(node, kernfs_node, name));
		if (n <= 0)
			return *used;
		*used += n;
		node = parent;
	}
	count(EF_COUNTER_path_cut);
	return *used;
}

__noinline int cgroup_into_record(u64 node)
{
	u8 *buffer = name_buffer();
	return buffer ? write_cgroup(buffer, node) : 0;
}

#endif
