/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The unwinders of ebpf/ as an ordinary program: all that BPF runs for a user
 * stack but mapping.h, which walks the kernel's own structures. Bounds that the
 * verifier enforces in the kernel are enforced here by the sanitizers: each map
 * value is an allocation of its exact size.
 */
#define EF_MAPPING_H /* see resolve_mapping() below */
#include "../../ebpf/memory.h"

int resolve_mapping(u64 address);

#include "../../ebpf/unwind.h"
/* after the kernel's types: libc's of the same names are macros and builtins
 * here */
#include "unwinders.h"
#include <sys/mman.h>

#define MAP(name) \
	{ \
#name, &name, sizeof(*name.key), sizeof(*name.value) \
	}
const struct host_map unwinder_maps[] = {
	MAP(scratch), MAP(counters), MAP(files), MAP(found_rules), MAP(process_runtimes),
#define RUNTIME(name, folder, map, owns) MAP(map),
#include "../../ebpf/runtimes.def"
#undef RUNTIME
	{ "tables", &tables, 4, 0 },
};
const size_t unwinder_map_count = sizeof(unwinder_maps) / sizeof(*unwinder_maps);
const size_t block_bytes = EF_BLOCK_BYTES;

#define COUNTER_NAME(name, text) #name,
const char *const counter_names[] = { EF_COUNTERS(COUNTER_NAME) };
const size_t counter_count = EF_COUNTER_MAX;

static struct task_struct task;

u64 bpf_get_current_task(void)
{
	return (u64)&task;
}

/* of the task above: mapping.h, which walks the kernel's other structures, is not here */
long bpf_probe_read_kernel(void *dst, u32 size, const void *address)
{
	__builtin_memcpy(dst, address, size);
	return 0;
}

/* What asks user space to attach to a runtime: nobody is there. */
long bpf_ringbuf_output(void *ringbuf, void *data, u64 size, u64 flags)
{
	return 0;
}

/* In place of mapping.h: the captured process's executable mappings. */
int resolve_mapping(u64 address)
{
	struct ef_scratch *s = get_scratch();
	const struct host_mapping *found = find_host_mapping(address);

	s->vma_lookups++;
	if (!found)
		return -EF_MARKER_UNMAPPED;
	u32 slot = s->next_mapping++ & (EF_MAPPINGS - 1);
	struct ef_mapping *m = &s->mappings[slot];
	struct ef_file_entry none = { .state = EF_FILE_NO_TABLE };
	u64 key = found->key;
	struct ef_file_entry *entry = key ? bpf_map_lookup_elem(&files, &key) : NULL;
	m->start = found->start;
	m->length = found->end - found->start;
	m->key = found->is_jit ? 0 : key;
	m->table_key = key;
	m->is_jit = found->is_jit;
	m->delta = key ? found->delta : 0;
	m->file = entry ? *entry : none;
	return slot;
}

/* What the loader sets before load, and is constant from then on. */
void configure(uint32_t max_user_frames, uint32_t runtimes)
{
	struct ef_config *writable = (struct ef_config *)&config;
	u64 page = (u64)writable & ~0xfffULL;
	if (mprotect((void *)page, (u64)(writable + 1) - page, PROT_READ | PROT_WRITE))
		__builtin_trap();
	writable->max_user_frames = max_user_frames;
	writable->runtimes = runtimes;
}

/* The twin of begin_sample(), load_user_regs() and take_user_stack(). */
struct unwound unwind(const uint64_t registers[REGISTERS], uint64_t thread_pointer, uint32_t tgid,
		      uint64_t ktime_ns)
{
	struct ef_scratch *s = get_scratch();

	__builtin_memset(s, 0, sizeof(*s));
	begin_stack(s);
	s->sample.process.tgid = tgid;
	s->sample.ktime_ns = ktime_ns;
	task.THREAD_POINTER_MEMBER = thread_pointer;
	for (int i = 0; i < EF_REGISTERS; i++)
		s->state.leaf.by_dwarf_number[i] = registers[i];
	s->state.fp = registers[REG_FP];
	s->state.sp = registers[REG_SP];
	s->state.pc = registers[16];
	unwind_user(s);
	end_user_stack(s, 0);
	return (struct unwound){
		.words = (const uint64_t *)s->trace.frames,
		.word_count = s->state.words,
		.user_frames = s->state.user_frames,
		.marker = s->state.marker,
	};
}
