/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a sample's value measures: one line for each source of samples, append only (the position is ef_sample.origin).
 * agent/records/records.gen.ts (Origin, PROFILE_TYPES) and docs/profile-types.md are generated from this table.
 *
 *   X(name, sample type, unit, period type, period unit, text)
 *
 * Types and units are those of OTLP and pprof. The values of one type add up: a sample of CPU time counts 1 and stands
 * for one period; a source that measures (a duration, bytes) puts what it measured into the value.
 */
#ifndef EF_PROFILE_TYPES_H
#define EF_PROFILE_TYPES_H

/* A text is one string, whatever its length. */
/* clang-format off */
#define EF_PROFILE_TYPES(X) \
	X(CPU, "samples", "count", "cpu", "nanoseconds", \
	  "The thread that runs, at each tick of a CPU's timer. The value is 1, the period the time of a tick") \
	X(OFF_CPU, "off_cpu", "nanoseconds", "", "", \
	  "Threads that wait, from when they leave a CPU to when they are back on one, with --off-cpu. The value is the time, times how many such waits the sampled one stands for; its time is the end") \
	X(THREAD_TIME, "thread_time", "nanoseconds", "", "", \
	  "Each thread, with --off-cpu: how long it was in which state, counted at each switch, so that the sum is the time that it was there. The stack is the state") \
	X(ALLOCATED, "alloc_space", "bytes", "", "", \
	  "What is allocated, with --event malloc. The value is the size, times how many allocations the sampled one stands for") \
	X(LIVE, "inuse_space", "bytes", "", "", \
	  "What of it is not freed yet, at the end of each interval")
/* clang-format on */

#define EF_ORIGIN_ID(name, ...) EF_ORIGIN_##name,
enum ef_origin { EF_PROFILE_TYPES(EF_ORIGIN_ID) EF_ORIGIN_MAX };

#endif
