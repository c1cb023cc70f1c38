/** The parts of the agent that count, and their names; the kernel side's first. */
import type { Executables } from './executables/executables.ts';
import type { Intervals } from './intervals.ts';
import type { JitFrames } from './jit/jit-frames.ts';
import type { ProcessCode } from './jit/process-code.ts';
import type { CpuBudget } from './limits/cpu-budget.ts';
import type { LoopDelay } from './limits/loop-delay.ts';
import type { MemoryBudget } from './limits/memory-budget.ts';
import type { PdbLines } from './pdb/pdb-lines.ts';
import type { ForeignFiles } from './processes/foreign-files.ts';
import type { ForeignReader } from './processes/foreign-reader.ts';
import type { ProcessManager } from './processes/process-manager.ts';
import type { RecordTakers } from './record-takers.ts';
import type { ProcessRuntimes } from './runtimes/process-runtimes.ts';
import type { RuntimeFrames } from './runtimes/runtime-frames.ts';
import type { SourceMaps } from './source-maps/source-maps.ts';
import type { Counters, StatsRegistry } from './stats-registry.ts';
import type { Debuginfod } from './symbolizer/debuginfod/debuginfod.ts';
import type { Kernel } from './symbolizer/kernel/kernel.ts';
import type { IdleTables } from './tracer/idle-tables.ts';
import type { Tracer } from './tracer/tracer.ts';
import type { LiveHeap } from './traces/live-heap.ts';
import type { ThreadTimes } from './traces/thread-times.ts';
import type { TraceHandler } from './traces/trace-handler.ts';
import type { TraceStore } from './traces/trace-store.ts';
import type { WorkerPool } from './workers/worker-pool.ts';

export interface CountedParts {
  tracer: Tracer;
  traces: TraceHandler;
  threadTimes: ThreadTimes;
  liveHeap: LiveHeap;
  store: TraceStore;
  processes: ProcessManager;
  executables: Executables;
  debuginfod: Debuginfod | undefined;
  idleTables: IdleTables;
  memory: MemoryBudget;
  cpu: CpuBudget | undefined;
  kernel: Kernel;
  attached: ProcessRuntimes;
  runtimes: RuntimeFrames;
  reader: ForeignReader;
  files: ForeignFiles;
  jit: JitFrames;
  processCode: ProcessCode;
  sourceMaps: SourceMaps | undefined;
  pdbs: PdbLines;
  workers: WorkerPool;
  /** Undefined where it is not watched. */
  loopDelay: LoopDelay | undefined;
  records: RecordTakers;
  intervals: Intervals;
}

/** `prefix.name`; losses begin with what lost them. */
export function addParts(registry: StatsRegistry, parts: CountedParts): void {
  for (const [prefix, read] of [...inKernel(parts), ...ofProcesses(parts), ...ofAgent(parts)])
    registry.add(prefix, read);
}

type Source = [prefix: string, read: () => Counters | undefined];

const inKernel = ({
  tracer,
  traces,
  threadTimes,
  liveHeap,
  store,
  idleTables,
  kernel,
}: CountedParts): Source[] => [
  ['bpf', () => tracer.counters()],
  ['traces', () => traces.stats],
  ['threads', () => threadTimes.stats],
  ['liveHeap', () => liveHeap.stats],
  ['traceStore', () => store.stats],
  ['tables', () => ({ ...tracer.tables.stats, ...idleTables.stats })],
  ['tables', () => ({ bytes: tracer.tables.bytes, count: tracer.tables.count })],
  ['samplers', () => tracer.samplers.stats],
  ['waiting', () => tracer.waitingStats],
  ['kernel', () => kernel.stats],
];

const ofProcesses = (parts: CountedParts): Source[] => [
  ['processes', () => parts.processes.stats],
  ['executables', () => parts.executables.counters],
  ['symbols', () => parts.executables.names.stats],
  ['debuginfod', () => parts.debuginfod?.stats],
  ['processRuntimes', () => ({ ...parts.attached.stats, processes: parts.attached.size })],
  ['processRuntimes', () => ({ approximate: parts.attached.approximate })],
  ['runtimeFrames', () => ({ ...parts.runtimes.stats, processes: parts.runtimes.processes })],
  ['reader', () => ({ ...parts.reader.stats, ...parts.files.stats })],
  ['jit', () => ({ ...parts.jit.stats })],
  ['processCode', () => parts.processCode.stats],
  ['sourceMaps', () => parts.sourceMaps?.stats],
  ['pdbs', () => parts.pdbs.stats],
];

const ofAgent = ({ memory, cpu, workers, loopDelay, records, intervals }: CountedParts): Source[] => [
  ['memory', () => memory.stats],
  ['memory', () => ({ rssBytes: process.memoryUsage.rss() })],
  ['cpuBudget', () => cpu?.stats],
  ['cpu', ownCpu],
  ['workers', () => ({ ...workers.stats, ...workers.penalties.stats, bytes: workers.privateBytes })],
  ['loop', () => loopDelay?.stats],
  ['records', () => records.stats],
  ['samples', () => intervals.stats],
];

const ownCpu = (): Counters => {
  const { user, system } = process.cpuUsage();
  return { userMicros: user, systemMicros: system };
};
