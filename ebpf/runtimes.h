/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * From a frame to the runtime whose it is. The unwinder of each is ebpf/FOLDER/unwind.h (runtimes.def has the folders)
 * with one global function, unwind_FOLDER(slot), which is asked at each native frame that may be the runtime's:
 *
 *   0  it has pushed the interpreted frames that this native frame runs, if any; the native frame follows as usual
 *   1  it has pushed frames in place of the native one and gone to its caller
 *
 * Code of a file is that of the runtime which user space detected in it. Code that no file backs is that of a runtime
 * with OWNS_ANONYMOUS that was detected in this execution of the process: see ef_process_runtimes. A process with a JIT
 * that is nobody's costs one question.
 *
 * The sampler is loaded for the runtimes that were detected on this machine. Each global function of a runtime begins with
 * RUNTIME_SCRATCH: where the runtime is not loaded the verifier drops the rest of the function unseen, and its maps
 * are not made.
 *
 * What all runtimes share, and how much of it there is:
 *
 *   a frame                 two words: kind (8 bits) and operand (56, of which JavaScript keeps 53 exact), then 64 bits
 *   a trace                 one runtime_file, for frames whose native one is missing; EF_MAX_WORDS words
 *   calls                   8 deep in all, of which 4 are left to unwind_FOLDER(): sample, unwind_steps, unwind_step, and
 *                           its own; in deferred.bpf.c the steps are inlined for that
 *   stack                   512 bytes along those calls; what is larger goes into state.h
 *   state                   what is left of 32 KiB beside ef_scratch, for the states of all
 *   verified instructions   a tenth more than docs/kernels.md says, of 1,000,000
 */
#ifndef EF_RUNTIMES_H
#define EF_RUNTIMES_H

#include "attach.h"
#include "unwind-frame.h"

/* made of runtimes.def by the Makefile: unwind.h of each runtime */
#include "runtime-unwind.h"

#define OWNS_FILES 0
#define OWNS_ANONYMOUS 1

static __always_inline void look_runtimes_up(struct ef_scratch *s)
{
	struct ef_process_runtimes *known = bpf_map_lookup_elem(&process_runtimes, &s->sample.process);

	s->has_looked_up = 1;
	s->has_asked = known && known->is_answered;
	s->detected = known ? known->detected : 0;
	for (u32 i = 0; i < EF_RUNTIME_MAX; i++) {
		s->runtime_files[i] = known ? known->files[i] : 0;
		s->runtime_deltas[i] = known ? known->deltas[i] : 0;
	}
}

/* Notes that the process has that runtime, in that file. Global, so that it is verified once. */
__noinline int note_runtime(u32 runtime, u64 key, u64 delta)
{
	struct ef_scratch *s = config.runtimes ? get_scratch() : NULL;
	u64 at = runtime, bit = 1ULL << (runtime & 31);

	OPAQUE(at);
	if (!s || at >= EF_RUNTIME_MAX)
		return 0;
	if (!s->has_looked_up)
		look_runtimes_up(s);
	if (s->runtime_files[at] == key && s->runtime_deltas[at])
		return 0;
	s->detected |= bit;
	s->runtime_files[at] = key;
	s->runtime_deltas[at] = delta;
	count(EF_COUNTER_runtimes_detected);
	/* the same of V8 alone, under the name that it had */
	if (runtime == EF_RUNTIME_V8)
		count(EF_COUNTER_v8_processes);
	struct ef_process_runtimes *known = bpf_map_lookup_elem(&process_runtimes, &s->sample.process);
	if (known) {
		known->detected |= bit;
		known->files[at] = key;
		known->deltas[at] = delta;
		return 0;
	}
	__builtin_memset(&s->new_runtimes, 0, sizeof(s->new_runtimes));
	s->new_runtimes.detected = bit;
	s->new_runtimes.files[at] = key;
	s->new_runtimes.deltas[at] = delta;
	bpf_map_update_elem(&process_runtimes, &s->sample.process, &s->new_runtimes, BPF_NOEXIST);
	return 0;
}

/* No runtime took the code: asks user space which ones the process has, unless it has said so. Once a sample, which may have
 * many such frames. */
static __always_inline void ask_which_runtimes(struct ef_scratch *s, const struct ef_mapping *m)
{
	if (s->has_asked)
		return;
	s->has_asked = 1;
	struct ef_process_runtimes *known = bpf_map_lookup_elem(&process_runtimes, &s->sample.process);
	if (!known) {
		__builtin_memset(&s->new_runtimes, 0, sizeof(s->new_runtimes));
		bpf_map_update_elem(&process_runtimes, &s->sample.process, &s->new_runtimes, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&process_runtimes, &s->sample.process);
	}
	if (known)
		ask_user_space(s, m, &known->ask_again_ns, &known->wait_ns, EF_RUNTIME_NONE, 0);
}

/* Code of a file in which user space has detected a runtime. */
static __always_inline int unwind_in_file(struct ef_scratch *s, u32 slot, const struct ef_mapping *m)
{
#define RUNTIME(name, folder, map, owns) \
	if (HAS_RUNTIME(name) && m->file.runtime == EF_RUNTIME_##name) { \
		if ((owns) == OWNS_ANONYMOUS && \
		    (!s->has_looked_up || s->runtime_files[EF_RUNTIME_##name] != m->key || \
		     !s->runtime_deltas[EF_RUNTIME_##name])) \
			note_runtime(EF_RUNTIME_##name, m->key, m->delta); \
		return unwind_##folder(slot); \
	}
#include "runtimes.def"
#undef RUNTIME
	return 0;
}

/* Code that no file backs: each runtime of the process that may own it is asked. */
static __always_inline int unwind_anonymous(struct ef_scratch *s, u32 slot, const struct ef_mapping *m)
{
	if (!s->has_looked_up)
		look_runtimes_up(s);
#define RUNTIME(name, folder, map, owns) \
	if (HAS_RUNTIME(name) && (owns) == OWNS_ANONYMOUS && (s->detected & 1U << EF_RUNTIME_##name) && \
	    unwind_##folder(slot)) \
		return 1;
#include "runtimes.def"
#undef RUNTIME
	ask_which_runtimes(s, m);
	return 0;
}

/* Code of a file that is not an ELF file: .NET runs methods of its libraries out of such. */
static __always_inline int unwind_image(struct ef_scratch *s, u32 slot, const struct ef_mapping *m)
{
	if (!HAS_RUNTIME(DOTNET))
		return 0;
	if (!s->has_looked_up)
		look_runtimes_up(s);
	if (s->detected & 1U << EF_RUNTIME_DOTNET)
		return unwind_dotnet(slot);
	if (m->file.state == EF_FILE_NO_TABLE)
		ask_which_runtimes(s, m);
	return 0;
}

static __always_inline int unwind_runtime(struct ef_scratch *s, u32 slot)
{
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];

	if (!config.runtimes)
		return 0;
	if (!m->key)
		return unwind_anonymous(s, slot, m);
	return m->file.state == EF_FILE_TABLE || m->file.runtime ? unwind_in_file(s, slot, m) :
								   unwind_image(s, slot, m);
}

#endif
