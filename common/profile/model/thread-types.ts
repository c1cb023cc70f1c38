/** What --off-cpu says of threads, as it stands in profiles: their types, and attributes of their samples. */

export const OFF_CPU = 'off_cpu/nanoseconds';
/** How long each thread was in which state; the stack is the state. */
export const THREAD_TIME = 'thread_time/nanoseconds';
/** CPU time and waits in one; the collector makes it of both. */
export const WALL_TIME = 'wall_time/nanoseconds';
/** Waits for locks alone: --event lock. */
export const LOCK = 'lock/nanoseconds';

/** A wait that lasts is reported every interval of the agent, at its end: so much later than it began. */
export const WAIT_REPORTED_MS = 10_000;

/** What their values are amounts of, in a sentence. */
export const WORDS: Readonly<Record<string, string>> = {
  [OFF_CPU]: 'waiting',
  [THREAD_TIME]: 'thread time',
  [WALL_TIME]: 'wall time',
  [LOCK]: 'waiting for locks',
};

export const THREAD_STATE = 'thread.state';
/** Name of the thread that has ended a wait. */
export const THREAD_WAKER = 'thread.waker';

/** Values of {@link THREAD_STATE}, by enum ef_thread_state of ebpf/records.h. */
export const THREAD_STATES = [
  'running',
  'runnable',
  'blocked:disk',
  'blocked:lock',
  'blocked:network',
  'blocked:sleep',
  'blocked:page-fault',
  'blocked:other',
] as const;
