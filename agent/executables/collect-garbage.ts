/**
 * Buffers that a thread has let go of. V8 counts what lies outside its heap only coarsely: a worker that has just read
 * a large file may hold 60 MB of dead buffers until it allocates as much again, which may be minutes later.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const MAX_BUFFER_BYTES = 12 << 20;

let collect: ((options?: { type: 'minor' }) => void) | undefined;
/** Buffers that were still in use after the last collection, bytes. */
let inUse = 0;

/** Collects them where they may be many. Call it between two pieces of work. */
export function collectDeadBuffers(): void {
  if (process.memoryUsage().arrayBuffers - inUse < MAX_BUFFER_BYTES) return;
  if (!collect) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as typeof collect;
  }
  // most are young, and then a tenth of the time will do
  collect?.({ type: 'minor' });
  if (process.memoryUsage().arrayBuffers - inUse >= MAX_BUFFER_BYTES / 2) collect?.();
  inUse = process.memoryUsage().arrayBuffers;
}
