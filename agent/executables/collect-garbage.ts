/**
 * Buffers that a thread has let go of. V8 counts what lies outside its heap only coarsely: a worker that has just read
 * a large file may hold 60 MB of dead buffers until it allocates as much again, which may be minutes later.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const MAX_BUFFER_BYTES = 12 << 20;

type Collect = (options?: { type: 'minor' }) => void;

let collect: Collect | undefined;
/** Bytes of buffers after the last collection, and after the last one that was thorough. */
let left = 0;
let inUse = 0;

function collector(): Collect {
  if (!collect) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as Collect;
  }
  return collect;
}

/** All that this thread has let go of, at once: some ten milliseconds. */
export function collectGarbage(): void {
  collector()();
}

/** Collects them where they may be many. Call it between two pieces of work. */
export function collectDeadBuffers(): void {
  if (process.memoryUsage().arrayBuffers - left < MAX_BUFFER_BYTES) return;
  const collect = collector();
  // most are young, and then a tenth of the time will do; older ones that are dead add up until there are as many
  collect({ type: 'minor' });
  left = process.memoryUsage().arrayBuffers;
  if (left - inUse < MAX_BUFFER_BYTES) return;
  collect();
  left = process.memoryUsage().arrayBuffers;
  inUse = left;
}
