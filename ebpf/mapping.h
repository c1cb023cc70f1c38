/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From an address of the sampled process to an ef_mapping: VMA, file key, and the file's table if it has one.
 * A file that nobody has asked about yet is reported to user space here, once. */
#ifndef EF_MAPPING_H
#define EF_MAPPING_H

#include "names.h"
#include "vma.h"

/* How exactly it is known when a file was used last; tables leave after a minute and more. */
#define LAST_USED_STEP_NS 100000000ULL

static __always_inline void report_file(struct ef_scratch *s, u64 key, const struct vma_fields *vma,
					const struct file_identity *id)
{
	struct ef_file *event = &s->record.file;
	u64 path_bytes = write_path(FILE_PATH_AT, vma->file);

	OPAQUE(path_bytes);
	if (path_bytes > EF_PATH_BYTES)
		path_bytes = EF_PATH_BYTES;
	event->type = EF_RECORD_FILE;
	event->path_bytes = path_bytes;
	event->tgid = s->sample.process.tgid;
	event->key = key;
	event->inode = id->inode;
	event->size = id->size;
	event->ctime_ns = id->ctime_ns;
	event->device = id->device;
	event->generation = id->generation;
	event->vma_start = vma->start;
	event->vma_end = vma->end;
	event->vma_offset = vma->pgoff << PAGE_SHIFT;
	if (bpf_ringbuf_output(&records, event, FILE_PATH_AT + path_bytes, BPF_RB_FORCE_WAKEUP)) {
		count(EF_COUNTER_files_lost_ring);
		bpf_map_delete_elem(&files, &key);
		return;
	}
	count(EF_COUNTER_files_reported);
}

/* Fills mappings[slot].file, reporting the file where it is new. */
static __always_inline void attach_file(struct ef_scratch *s, struct ef_mapping *m, const struct vma_fields *vma)
{
	struct file_identity *id = &s->file_identity;
	read_file_identity(vma->file, id);
	u64 key = file_key(id);
	struct ef_file_entry *entry = bpf_map_lookup_elem(&files, &key);

	m->key = m->table_key = key;
	m->delta = (vma->pgoff << PAGE_SHIFT) - vma->start;
	if (entry) {
		m->file = *entry;
		/* not each time: all CPUs use the same few files, and would pass the line to one another */
		if (s->sample.ktime_ns - m->file.last_used_ns > LAST_USED_STEP_NS)
			entry->last_used_ns = s->sample.ktime_ns;
		if (entry->state == EF_FILE_MEMORY) {
			m->key = 0;
			m->delta = 0;
			m->is_shared = 1;
		}
		return;
	}
	struct ef_file_entry *pending = &s->pending_file;
	__builtin_memset(pending, 0, sizeof(*pending));
	pending->state = EF_FILE_PENDING;
	pending->last_used_ns = s->sample.ktime_ns;
	m->file = *pending;
	if (bpf_map_update_elem(&files, &key, pending, BPF_NOEXIST)) {
		/* another CPU was first, or the map is full */
		if (!bpf_map_lookup_elem(&files, &key))
			count(EF_COUNTER_files_map_full);
		return;
	}
	report_file(s, key, vma, id);
}

/* Code for which user space has found a table; 1 where it has none. */
static __always_inline int attach_code(struct ef_scratch *s, struct ef_mapping *m, u64 start)
{
	const struct ef_process_id *process = &s->sample.process;

	s->code_key.tgid = process->tgid;
	s->code_key.start = start;
	struct ef_code *code = bpf_map_lookup_elem(&process_code, &s->code_key);
	if (!code || code->process.exec_id != process->exec_id ||
	    code->process.start_boottime_ns != process->start_boottime_ns)
		return 1;
	struct ef_file_entry *entry = bpf_map_lookup_elem(&files, &code->key);
	if (!entry)
		return 1;
	m->file = *entry;
	entry->last_used_ns = s->sample.ktime_ns;
	/* code of a JIT is asked of runtimes and named as what no file backs; it has a table all the same */
	m->key = code->is_jit ? 0 : code->key;
	m->table_key = code->key;
	m->delta = code->delta;
	m->is_jit = code->is_jit;
	return 0;
}

static __always_inline void attach_anonymous(struct ef_scratch *s, struct ef_mapping *m,
					     const struct vma_fields *vma)
{
	u64 vdso = KERNEL_WORD(s->state.mm, mm_struct, context.vdso), key = EF_VDSO_KEY;
	struct ef_file_entry none = { .state = EF_FILE_NO_TABLE };

	m->file = none;
	if (vdso && vdso == vma->start) {
		struct ef_file_entry *entry = bpf_map_lookup_elem(&files, &key);
		if (entry)
			m->file = *entry;
		m->key = m->table_key = key;
		m->delta = -vma->start;
		return;
	}
	m->key = 0;
	m->delta = 0;
}

/* Reads the VMA of s->state.mm that covers `address` into s->vma; again where it changed meanwhile. */
static __always_inline int find_vma(struct ef_scratch *s, u64 address)
{
	struct vma_fields *vma = &s->vma;
	int result = VMA_RACE;

	s->vma_lookups++;
	for (int attempt = 0; attempt < 2 && result == VMA_RACE; attempt++) {
		if (attempt)
			count(EF_COUNTER_vma_retries);
		result = read_vma(s->state.mm, address, vma, s->maple_node);
	}
	return result;
}

/* Resolves `address` into the next slot of scratch->mappings; global, so that it is verified once. Returns the
 * slot, or -EF_MARKER_… where there is no executable mapping. */
__noinline int resolve_mapping(u64 address)
{
	struct ef_scratch *s = get_scratch();
	if (!s)
		return -EF_MARKER_UNMAPPED;
	struct vma_fields *vma = &s->vma;
	int result = find_vma(s, address);

	if (result == VMA_RACE)
		return -EF_MARKER_VMA_RACE;
	if (result == VMA_NONE || !(vma->flags & VM_EXEC))
		return -EF_MARKER_UNMAPPED;

	u32 slot = s->next_mapping++ & (EF_MAPPINGS - 1);
	struct ef_mapping *m = &s->mappings[slot];
	m->start = vma->start;
	m->length = vma->end - vma->start;
	m->is_jit = 0;
	m->is_shared = 0;
	if (vma->file)
		attach_file(s, m, vma);
	else
		attach_anonymous(s, m, vma);
	if (!m->key)
		attach_code(s, m, vma->start);
	return slot;
}

#endif
