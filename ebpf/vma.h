/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * From (mm, address) to the mapping and its file, without a lock and without help from user space.
 *
 * BPF programs run inside an RCU read section and all loads here survive faults, so walking the tree is safe
 * while it changes; whether the answer is true is settled afterwards: the address must lie inside the VMA
 * found, and its fields must read the same a second time. From 6.1 on the tree is a maple tree, before that
 * an rb-tree. Where each load is an instruction (kernel-memory.h) a search among a node's pivots loads few of them;
 * elsewhere a node is read in one call of a helper. That is three times slower.
 *
 * Maple nodes: bits 3..6 of an entry are the node's type (1 leaf, 2 range, 3 allocation range), the low byte
 * is not part of the address; only the root entry carries bit 1. Pivots that are not set read 0 and mean
 * "everything above". See Documentation/core-api/maple_tree.rst and lib/maple_tree.c of Linux 6.1.
 */
#ifndef EF_VMA_H
#define EF_VMA_H

#include "maps.h"
#include "vma-fields.h"

#define VM_EXEC 4
#define MAPLE_LEVELS 8
#define RB_LEVELS 40

enum vma_result { VMA_OK = 0, VMA_NONE = 1, VMA_RACE = 2 };

/* 1 if the pivot is set and lies below the page of the address; also right for 0 and ULONG_MAX. */
#define PIVOT_BELOW(pivot, page) ((((((pivot)) - 1) >> 12) - (page)) >> 63)

#ifndef EF_NO_RDONLY_CAST
static __noinline u64 maple_walk(u64 mm, u64 address)
{
	u64 page = address >> 12;
	u64 entry = KERNEL_LOAD(u64, mm + FIELD_OFFSET(mm_struct, mm_mt) + FIELD_OFFSET(maple_tree, ma_root));
	const u64 range_slots = FIELD_OFFSET(maple_range_64, slot);
	const u64 arange_slots = FIELD_OFFSET(maple_arange_64, slot);

	for (int level = 0; level < MAPLE_LEVELS; level++) {
		if (level == 0 && (entry & 3) != 2)
			return entry; /* a single entry lives in the root itself */
		if (entry < 4096)
			return 0;
		u64 node = entry & ~0xffULL, type = (entry >> 3) & 0xf;
		u64 pivots = node + 8, at = pivots, slots = type == 3 ? arange_slots : range_slots;
		/* binary search without branches over the 9 or 15 pivots */
		at += PIVOT_BELOW(KERNEL_LOAD(u64, at + 7 * 8), page) << 6;
		if (type != 3 || at == pivots) {
			at += PIVOT_BELOW(KERNEL_LOAD(u64, at + 3 * 8), page) << 5;
			at += PIVOT_BELOW(KERNEL_LOAD(u64, at + 8), page) << 4;
			at += PIVOT_BELOW(KERNEL_LOAD(u64, at), page) << 3;
		} else {
			at += PIVOT_BELOW(KERNEL_LOAD(u64, at), page) << 3;
		}
		entry = KERNEL_LOAD(u64, node + slots + (at - pivots));
		if (type <= 1)
			return entry;
	}
	return 0;
}

/* `words`: not needed */
static __always_inline int read_vma(u64 mm, u64 address, struct vma_fields *out, u64 *words)
{
	u64 vma = maple_walk(mm, address);

	(void)words;
	if (vma < 4096)
		return VMA_NONE;
	/* start and end, and pgoff and file, are neighbours on every kernel from 5.10 on */
	u64 range = vma + FIELD_OFFSET(vm_area_struct, vm_start);
	u64 backing = vma + FIELD_OFFSET(vm_area_struct, vm_pgoff);
	out->start = KERNEL_LOAD(u64, range);
	out->end = KERNEL_LOAD(u64, range + 8);
	if (address < out->start || address >= out->end)
		return VMA_NONE;
	out->pgoff = KERNEL_LOAD(u64, backing);
	out->file = KERNEL_LOAD(u64, backing + 8);
	out->flags = KERNEL_LOAD(u64, vma + FIELD_OFFSET(vm_area_struct, vm_flags));
	if (KERNEL_LOAD(u64, range) != out->start || KERNEL_LOAD(u64, range + 8) != out->end ||
	    KERNEL_LOAD(u64, backing) != out->pgoff || KERNEL_LOAD(u64, backing + 8) != out->file ||
	    KERNEL_LOAD(u64, vma + FIELD_OFFSET(vm_area_struct, vm_mm)) != mm)
		return VMA_RACE;
	return VMA_OK;
}
#else
/* `pivots`: room for a node */
static __noinline u64 maple_walk(u64 mm, u64 address, u64 *pivots)
{
	u64 page = address >> 12, entry = 0;
	const u64 range_slots = FIELD_OFFSET(maple_range_64, slot);
	const u64 arange_slots = FIELD_OFFSET(maple_arange_64, slot);

	KERNEL_READ(&entry, 8, mm + FIELD_OFFSET(mm_struct, mm_mt) + FIELD_OFFSET(maple_tree, ma_root));
	for (int level = 0; level < MAPLE_LEVELS; level++) {
		if (level == 0 && (entry & 3) != 2)
			return entry;
		if (entry < 4096)
			return 0;
		u64 node = entry & ~0xffULL, type = (entry >> 3) & 0xf, below = 0, slots = range_slots;
		/* word 0 of a node is its parent */
		if (KERNEL_READ(pivots, 16 * 8, node))
			return 0;
#pragma unroll
		for (int i = 1; i < 10; i++)
			below += PIVOT_BELOW(pivots[i], page);
		if (type == 3) {
			slots = arange_slots;
		} else {
#pragma unroll
			for (int i = 10; i < 16; i++)
				below += PIVOT_BELOW(pivots[i], page);
		}
		if (KERNEL_READ(&entry, 8, node + slots + below * 8))
			return 0;
		if (type <= 1)
			return entry;
	}
	return 0;
}

static __noinline u64 rb_walk(u64 mm, u64 address)
{
	const u64 node_offset = FIELD_OFFSET(vm_area_struct___5_10, vm_rb);
	u64 node = 0, range[2];

	KERNEL_READ(&node, 8, mm + FIELD_OFFSET(mm_struct___5_10, mm_rb));
	for (int level = 0; level < RB_LEVELS; level++) {
		if (!node)
			return 0;
		u64 vma = node - node_offset;
		if (KERNEL_READ(range, 16, vma + FIELD_OFFSET(vm_area_struct, vm_start)))
			return 0;
		if (address >= range[0] && address < range[1])
			return vma;
		u64 next = address < range[0] ? FIELD_OFFSET(rb_node, rb_left) : FIELD_OFFSET(rb_node, rb_right);
		if (KERNEL_READ(&node, 8, node + next))
			return 0;
	}
	return 0;
}

/* `words`: room for a maple node, and then for the second reading: of the 512 bytes of stack that a chain of calls may
 * have in all, Linux 6.1 leaves none for them. */
static __always_inline int read_vma(u64 mm, u64 address, struct vma_fields *out, u64 *words)
{
	u64 vma = bpf_core_field_exists(struct mm_struct, mm_mt) ? maple_walk(mm, address, words) :
								   rb_walk(mm, address);

	if (vma < 4096)
		return VMA_NONE;
	u64 range = vma + FIELD_OFFSET(vm_area_struct, vm_start);
	u64 backing = vma + FIELD_OFFSET(vm_area_struct, vm_pgoff);
	if (KERNEL_READ(&out->start, 16, range) || KERNEL_READ(&out->pgoff, 16, backing))
		return VMA_RACE;
	if (address < out->start || address >= out->end)
		return VMA_NONE;
	out->flags = KERNEL_WORD(vma, vm_area_struct, vm_flags);
	if (KERNEL_READ(words, 16, range) || KERNEL_READ(words + 2, 16, backing) ||
	    KERNEL_READ(words + 4, 8, vma + FIELD_OFFSET(vm_area_struct, vm_mm)))
		return VMA_RACE;
	if (words[0] != out->start || words[1] != out->end || words[2] != out->pgoff || words[3] != out->file ||
	    words[4] != mm)
		return VMA_RACE;
	return VMA_OK;
}

#endif

/* Each shape of the change time has a function of its own: clang may hoist the offset of a missing field out
 * of its guard, and the verifier would then refuse the whole program. */
static __noinline u64 ctime_6_11(u64 inode)
{
	/* bit 31 says that someone has read the time (6.13): no part of it */
	u32 ns = KERNEL_FIELD(inode, inode, i_ctime_nsec) & 0x7fffffff;

	return KERNEL_WORD(inode, inode, i_ctime_sec) * 1000000000ULL + ns;
}

static __noinline u64 ctime_6_6(u64 inode)
{
	u64 time[2] = {};
	KERNEL_READ(time, 16, inode + FIELD_OFFSET(inode___6_6, __i_ctime));
	return time[0] * 1000000000ULL + (u32)time[1];
}

static __noinline u64 ctime_5_10(u64 inode)
{
	u64 time[2] = {};
	KERNEL_READ(time, 16, inode + FIELD_OFFSET(inode___5_10, i_ctime));
	return time[0] * 1000000000ULL + (u32)time[1];
}

static __always_inline void read_file_identity(u64 file, struct file_identity *out)
{
	u64 inode = KERNEL_WORD(file, file, f_inode);
	u64 super = KERNEL_WORD(inode, inode, i_sb);

	out->inode = KERNEL_WORD(inode, inode, i_ino);
	out->size = KERNEL_WORD(inode, inode, i_size);
	out->device = KERNEL_FIELD(super, super_block, s_dev);
	out->generation = KERNEL_FIELD(inode, inode, i_generation);
	if (bpf_core_field_exists(struct inode, i_ctime_sec))
		out->ctime_ns = ctime_6_11(inode);
	else if (bpf_core_field_exists(struct inode___6_6, __i_ctime))
		out->ctime_ns = ctime_6_6(inode);
	else
		out->ctime_ns = ctime_5_10(inode);
}

/* Never 0 and never a reserved key. */
static __always_inline u64 file_key(const struct file_identity *id)
{
	u64 device = id->device | (u64)id->generation << 32;
	u64 key = mix64(mix64(mix64(device ^ 0x9e3779b97f4a7c15ULL) + id->inode) + id->ctime_ns);
	return key | 0x100;
}

#endif
