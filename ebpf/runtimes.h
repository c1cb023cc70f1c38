/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The runtimes: an include and a case each. A runtime's file has its maps, whose names begin with its own, and one
 * global function that is asked at each native frame which may be the runtime's:
 *
 *   0  it has pushed the interpreted frames that this native frame runs, if any; the native frame follows as usual
 *   1  it has pushed frames in place of the native one and gone to its caller
 *
 * The sampler is loaded for the runtimes that were met on this machine. Each global function of a runtime begins with
 * HAS_RUNTIME: where it is constant 0 the verifier drops the rest of the function unseen, and its maps are not made.
 */
#ifndef EF_RUNTIMES_H
#define EF_RUNTIMES_H

#include "memory.h"

#define HAS_RUNTIME(name) (config.runtimes & 1U << EF_RUNTIME_##name)
/* With what a global function of a runtime begins: NULL where the runtime is not loaded. */
#define RUNTIME_SCRATCH(name) (HAS_RUNTIME(name) ? get_scratch() : NULL)

#include "hotspot/unwind.h"
#include "python/unwind.h"
#include "v8/unwind.h"

static __always_inline int unwind_runtime(struct ef_scratch *s, u32 slot)
{
	struct ef_mapping *m = &s->mappings[slot & (EF_MAPPINGS - 1)];

	if (HAS_RUNTIME(PYTHON) && m->file.runtime == EF_RUNTIME_PYTHON)
		return unwind_python(slot);
	if (HAS_RUNTIME(V8) && (m->file.runtime == EF_RUNTIME_V8 || !m->key) && unwind_v8(slot))
		return 1;
	if (HAS_RUNTIME(HOTSPOT) && (m->file.runtime == EF_RUNTIME_HOTSPOT || !m->key))
		return unwind_hotspot(slot);
	return 0;
}

#endif
