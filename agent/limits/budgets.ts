/** How memory and CPU time are measured against their limits, and what gives way to them. */
import type { Native } from '../base/native.ts';
import { CpuBudget } from './cpu-budget.ts';
import { type Caches, dropCaches } from './drop-caches.ts';
import { MemoryBudget } from './memory-budget.ts';

interface Limited {
  native: Native;
  workers: Caches['workers'] & { readonly privateBytes: number; readonly pids: readonly number[] };
}

export interface LimitedMemory extends Limited {
  store: Caches['store'];
  frames: Caches['frames'];
  maker: Caches['maker'];
  maps: { readonly mapBytes: number };
  tables: { readonly bytes: number; limit(bytes: number, isStopped: () => boolean): Promise<void> };
  isStopped(): boolean;
  warn(message: string): void;
}

/** @param limits `maxBytes`: of the process, its workers and its BPF maps; `maxTableBytes`: of unwind tables among them */
export function makeMemoryBudget(
  limits: { maxBytes: number; maxTableBytes: number },
  parts: LimitedMemory,
): MemoryBudget {
  const { native, workers, maps, tables, isStopped } = parts;
  return new MemoryBudget(
    limits,
    {
      residentBytes: () => process.memoryUsage.rss() + workers.privateBytes,
      mapBytes: () => maps.mapBytes,
      releaseFreeMemory: () => {
        native.releaseFreeMemory();
        native.releaseCode();
      },
      dropCaches: () => dropCaches(parts),
      tableBytes: () => tables.bytes,
      limitTables: (bytes) => tables.limit(bytes, isStopped),
    },
    parts.warn,
  );
}

export interface LimitedCpu extends Limited {
  reader: { readonly pids: readonly number[] };
  /** Are records or profiles lost or late? */
  isBehind(): boolean;
  shed(share: number): void;
}

/** @param limit share of one core; undefined: any */
export function makeCpuBudget(limit: number | undefined, parts: LimitedCpu): CpuBudget | undefined {
  if (limit === undefined) return undefined;
  const { native, workers, reader } = parts;
  return new CpuBudget({
    limit,
    cpuMs: () => native.familyCpuMicros([...workers.pids, ...reader.pids]) / 1000,
    nowMs: () => performance.now(),
    isBehind: parts.isBehind,
    shed: parts.shed,
  });
}
