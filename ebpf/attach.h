/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Runtimes whose state can't be found from a file and the thread's registers: where they keep their code is known to
 * each process alone, and too much of a search for BPF. Such a runtime has a map by process (ef_process_id, so that an
 * entry is never another program's), whose values begin with an ef_attachment.
 *
 * The first frame in a process without an entry makes an empty one and asks user space for the rest
 * (agent/runtimes/process-runtimes.ts). A runtime that is still starting is asked for again, after twice as long
 * each time; so is one that can't be attached to, which costs a record a minute in the end.
 */
#ifndef EF_ATTACH_H
#define EF_ATTACH_H

#include "memory.h"

#define ATTACH_FIRST_WAIT_NS 50000000ULL
#define ATTACH_MAX_WAIT_NS 60000000000ULL

/* `m`: where the runtime was detected, its file or code that no file backs. */
static __always_inline void ask_user_space(struct ef_scratch *s, const struct ef_mapping *m, u64 *ask_again_ns,
					   u64 *wait_ns, u32 runtime, u32 is_attached)
{
	struct ef_runtime_detected *event = &s->record.detected;
	u64 wait = *wait_ns * 2;

	if (s->sample.ktime_ns < *ask_again_ns)
		return;
	if (wait < ATTACH_FIRST_WAIT_NS)
		wait = ATTACH_FIRST_WAIT_NS;
	if (wait > ATTACH_MAX_WAIT_NS)
		wait = ATTACH_MAX_WAIT_NS;
	*wait_ns = wait;
	*ask_again_ns = s->sample.ktime_ns + wait;
	event->type = EF_RECORD_RUNTIME;
	event->is_attached = is_attached;
	event->runtime = runtime;
	event->process = s->sample.process;
	event->key = m->key;
	event->base = m->key ? -m->delta : 0;
	if (bpf_ringbuf_output(&records, event, sizeof(*event), BPF_RB_FORCE_WAKEUP))
		count(EF_COUNTER_runtimes_lost_ring);
	else
		count(EF_COUNTER_runtimes_met);
}

static __always_inline void ask_to_attach(struct ef_scratch *s, const struct ef_mapping *m,
					  struct ef_attachment *attachment, u32 runtime)
{
	ask_user_space(s, m, &attachment->ask_again_ns, &attachment->wait_ns, runtime, attachment->is_attached);
}

#endif
