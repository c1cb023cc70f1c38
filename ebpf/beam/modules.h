/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From an address in the JIT's code to the module that it belongs to. See unwind.h. */
#ifndef EF_BEAM_MODULES_H
#define EF_BEAM_MODULES_H

#include "../attach.h"
#include "../unwind-frame.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct ef_process_id);
	__type(value, struct ef_beam);
} beam_vms SEC(".maps");

/* Process: stop */
#define BEAM_PROCESS_STACK 0x58
/* log2 of the most modules that are searched */
#define BEAM_SEARCH_STEPS 17

#define BEAM_READ(dst, size, address) read_or_count((dst), (size), (address), EF_COUNTER_beam_read_failed)

/* Copies what is known of the process into `w`; in code of the JIT, asks user space where that is nothing yet. */
static __always_inline void look_vm_up(struct ef_scratch *s, struct ef_beam_state *w, const struct ef_mapping *m)
{
	struct ef_process_id id = s->sample.process;
	struct ef_beam *vm = bpf_map_lookup_elem(&beam_vms, &id);

	w->has_tables = 0;
	w->module.start = w->module.end = 0;
	w->vm.attachment.is_attached = 0;
	/* its tables are filled before the first code of the JIT runs */
	if (m->key && !(vm && vm->attachment.is_attached))
		return;
	w->is_looked_up = 1;
	if (!vm) {
		bpf_map_update_elem(&beam_vms, &id, &w->nothing, BPF_NOEXIST);
		vm = bpf_map_lookup_elem(&beam_vms, &id);
	}
	if (!vm)
		count(EF_COUNTER_runtimes_map_full);
	else if (vm->attachment.is_attached)
		w->vm = *vm;
	else
		ask_to_attach(s, m, &vm->attachment, EF_RUNTIME_BEAM);
}

static __always_inline long read_here(void *dst, u32 size, u64 address)
{
	long error = USER_READ_HERE(dst, size, address);
	if (error)
		count(EF_COUNTER_beam_read_failed);
	return error;
}

/* There are three tables: code that is loaded goes into another one, which is then made that in use. */
static __always_inline int read_beam_tables(struct ef_beam_state *w)
{
	u32 active = BEAM_TABLES;

	w->has_tables = 1;
	w->table = BEAM_TABLES;
	if (read_here(w->tables, sizeof(w->tables), w->vm.ranges)) {
		w->tables[0].count = w->tables[1].count = w->tables[2].count = 0;
		return 1;
	}
	if (w->vm.active && !read_here(&active, 4, w->vm.active) && active < BEAM_TABLES)
		w->table = active;
	return 0;
}

/* The last module that begins at or below the address becomes w->module, if it holds it. Without a branch that would
 * double what the verifier walks through. */
static __always_inline int search_beam_table(struct ef_beam_state *w, const struct beam_table *table, u64 address)
{
	u64 from = 0, count = table->count;
	struct beam_range range = {};

	if (count >> BEAM_SEARCH_STEPS)
		return 1;
	for (u32 i = 0; i < BEAM_SEARCH_STEPS + 1 && count; i++) {
		u64 half = count >> 1;
		if (read_here(&range, sizeof(range), table->modules + (from + half) * sizeof(range))) {
			w->is_unread = 1;
			return 1;
		}
		if (address - range.start < range.end - range.start) {
			w->module = range;
			return 0;
		}
		if (address < range.start) {
			count = half;
		} else {
			from += half + 1;
			count -= half + 1;
		}
	}
	return 1;
}

/* Finds the module of an address: 0, or 1 where it belongs to none. Global, so that it is verified once. */
__noinline int find_beam_module(u64 address)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(BEAM);
	if (!s)
		return 1;
	struct ef_beam_state *w = &s->runtimes.beam;
	u64 md5 = 0;

	if (address - w->module.start < w->module.end - w->module.start)
		return 0;
	if (!w->has_tables && read_beam_tables(w))
		return 1;
	for (u32 i = 0; i < BEAM_TABLES; i++) {
		if (w->table != BEAM_TABLES && w->table != i)
			continue;
		if (search_beam_table(w, &w->tables[i], address))
			continue;
		w->cookie = 0;
		if (!read_here(&md5, 8, w->module.start + w->vm.md5) && md5)
			read_here(&w->cookie, 8, md5);
		return 0;
	}
	return 1;
}

static __always_inline void push_beam(struct ef_scratch *s, struct ef_beam_state *w, u64 address, bool has_module)
{
	u64 cookie = w->cookie & ((1U << EF_BEAM_COOKIE_BITS) - 1);

	push_word(s, FRAME_WORD(EF_FRAME_BEAM, address));
	push_word(s, has_module ? (w->module.start >> 3) << EF_BEAM_COOKIE_BITS | cookie : 0);
	/* addresses of code mean something in this process only */
	s->state.has_anonymous = 1;
	s->state.has_interpreted = 1;
	s->state.user_frames++;
}

#endif
