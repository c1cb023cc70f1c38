/**
 * Buffers that a thread has let go of. V8 counts what lies outside its heap only coarsely: a worker that has just read
 * a large file may hold 60 MB of dead buffers until it allocates as much again, which may be minutes later.
 */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const MAX_BUFFER_BYTES = 12 << 20;

type Collect = (options?: { type: 'minor' }) => void;

let collect: Collect | undefined;
/** Bytes outside the heap, mostly buffers; process.memoryUsage() would read a file of /proc as well. */
const outsideBytes = (): number => getHeapStatistics().external_memory;

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

/**
 * All that this thread has let go of, while it goes on with its work: at once that would take a tenth of a second.
 * `begin` makes V8 begin. Resolves when it is done, after `limitMs` in any case.
 */
export function collectBetweenWork(begin: () => void, limitMs = 1000): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      observer.disconnect();
      resolve();
    };
    const timer = setTimeout(done, limitMs);
    const observer = new PerformanceObserver((list) => {
      if (list.getEntries().some(isThorough)) done();
    });
    observer.observe({ entryTypes: ['gc'] });
    begin();
  });
}

/** `entry` is of the kind "gc", whose detail the types leave out. */
const isThorough = (entry: PerformanceEntry): boolean =>
  (entry as { detail?: { kind?: number } }).detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR;

/** Collects them where they may be many. Call it between two pieces of work. */
export function collectDeadBuffers(): void {
  if (outsideBytes() - left < MAX_BUFFER_BYTES) return;
  const collect = collector();
  // most are young, and then a tenth of the time will do; older ones that are dead add up until there are as many
  collect({ type: 'minor' });
  left = outsideBytes();
  if (left - inUse < MAX_BUFFER_BYTES) return;
  collect();
  left = outsideBytes();
  inUse = left;
}
