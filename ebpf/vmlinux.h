/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The kernel types that the BPF programs touch, and only the members that they touch. Every struct is marked
 * preserve_access_index: libbpf finds the real offsets in the running kernel's BTF when it loads the object
 * (CO-RE), so this file says nothing about any particular kernel and the object serves 5.10 and later.
 * A suffix ___name marks another shape of the same struct (an older kernel's); libbpf ignores the suffix.
 */
#ifndef EF_VMLINUX_H
#define EF_VMLINUX_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef signed short __s16;
typedef unsigned int __u32;
typedef signed int __s32;
typedef unsigned long long __u64;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;
#define NULL ((void *)0)
#define offsetof(type, member) __builtin_offsetof(type, member)

/* UAPI, stable: include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_MMAPABLE = 1 << 10, BPF_F_INNER_MAP = 1 << 12 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0 };

/* 6.18 and later; found in map values by this name */
struct bpf_task_work {
	__u64 opaque;
} __attribute__((aligned(8)));

struct bpf_dynptr {
	u64 opaque[2];
};

struct bpf_raw_tracepoint_args {
	u64 args[0];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next, *prev;
};
struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};
struct rb_root {
	struct rb_node *rb_node;
};

struct maple_tree {
	void *ma_root;
};
struct maple_range_64 {
	void *slot[16];
};
struct maple_arange_64 {
	void *slot[10];
};

struct qstr {
	const unsigned char *name;
};
struct super_block {
	u32 s_dev;
};
struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	u32 i_generation;
	s64 i_size;
	s64 i_ctime_sec; /* 6.11 and later */
	u32 i_ctime_nsec;
};
struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
};
struct inode___6_6 {
	struct timespec64 __i_ctime;
};
struct inode___5_10 {
	struct timespec64 i_ctime;
};
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};
struct vfsmount {
	struct dentry *mnt_root;
};
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};
struct file {
	struct path f_path;
	struct inode *f_inode;
};

typedef struct {
	void *vdso;
} mm_context_t;

struct xol_area {
	unsigned long vaddr;
};
struct uprobes_state {
	struct xol_area *xol_area;
};
struct mm_struct {
	struct maple_tree mm_mt;
	struct file *exe_file;
	mm_context_t context;
	struct uprobes_state uprobes_state;
	unsigned long brk;
};
struct mm_struct___5_10 {
	struct rb_root mm_rb;
};
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};
struct vm_area_struct___5_10 {
	struct rb_node vm_rb;
};

struct kernfs_node {
	struct kernfs_node *parent;
	const char *name;
};
struct kernfs_node___6_15 {
	struct kernfs_node *__parent;
};
struct cgroup {
	struct kernfs_node *kn;
	int level;
};
struct cgroup_subsys_state {
	struct cgroup *cgroup;
};
enum cgroup_subsys_id {
	cpu_cgrp_id,
	memory_cgrp_id,
	pids_cgrp_id,
};
struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
};

typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
};
typedef struct {
	u32 val;
} kuid_t;
struct cred {
	kuid_t uid;
};

struct pt_regs {
	s32 syscallno; /* arm64 */
};
struct thread_struct {
	unsigned long fsbase; /* x86 */
	struct {
		unsigned long tp_value;
	} uw;      /* arm64 */
	u32 vl[1]; /* arm64, 5.16 and later */
};
struct thread_struct___5_10 {
	u32 sve_vl;
};
struct sched_entity {
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
};
struct task_struct {
	struct thread_struct thread;
	struct sched_entity se;
	unsigned int __state; /* 5.14 and later */
	unsigned int flags;
	unsigned in_iowait : 1;
	int pid;
	int tgid;
	void *stack;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	u64 start_boottime;
	u64 self_exec_id;
	char comm[16];
	const struct cred *cred;
	struct css_set *cgroups;
	struct signal_struct *signal;
	struct uprobe_task *utask;
};
struct uprobe_task {
	struct return_instance *return_instances;
};
struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};
struct task_struct___5_10 {
	struct thread_struct___5_10 thread;
	long state;
};

#pragma clang attribute pop

#endif
