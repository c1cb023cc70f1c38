/** Dispatches each kind of record from the kernel to the parts of the agent. */
import type { Pid } from '../common/base/brand.ts';
import type { Executables } from './executables/executables.ts';
import type { JitFrames } from './jit/jit-frames.ts';
import type { ProcessCode } from './jit/process-code.ts';
import type { PdbLines } from './pdb/pdb-lines.ts';
import type { ProcessContexts } from './processes/process-contexts.ts';
import type { ProcessManager } from './processes/process-manager.ts';
import type { RootViews } from './processes/root-views.ts';
import { RecordType } from './records/records.gen.ts';
import {
  type ExitRecord,
  type ProcessRecord,
  readExitRecord,
  readFileRecord,
  readFunctionRecord,
  readProcessRecord,
  readRuntimeRecord,
} from './records/records.ts';
import { NewPrograms } from './runtimes/new-programs.ts';
import type { ProcessRuntimes } from './runtimes/process-runtimes.ts';
import type { RuntimeFrames } from './runtimes/runtime-frames.ts';
import type { SourceMaps } from './source-maps/source-maps.ts';
import { RecordDispatch } from './tracer/record-dispatch.ts';
import type { RecordConsumer, Steps } from './tracer/record-stream.ts';
import type { Stacks } from './traces/stacks.ts';
import type { ThreadTimes } from './traces/thread-times.ts';
import type { TraceHandler } from './traces/trace-handler.ts';
import type { TraceStore } from './traces/trace-store.ts';
import { TracesToName } from './traces/traces-to-name.ts';

export interface RecordParts {
  traces: Pick<TraceHandler, 'onSample' | 'onTrace' | 'drained'>;
  store: Pick<TraceStore, 'read'>;
  stacks: Pick<Stacks, 'resolveNow'>;
  processes: Pick<ProcessManager, 'onProcess' | 'onExit'>;
  contexts: Pick<ProcessContexts, 'onProcess' | 'onExit'> | undefined;
  views: Pick<RootViews, 'forget'>;
  executables: Pick<Executables, 'onFile'>;
  attached: Pick<ProcessRuntimes, 'onDetected' | 'forget'>;
  runtimes: Pick<RuntimeFrames, 'beginBatch' | 'onFunction' | 'forget'>;
  sourceMaps: Pick<SourceMaps, 'forgetProcess'> | undefined;
  pdbs: Pick<PdbLines, 'forgetProcess'>;
  jit: Pick<JitFrames, 'onExit'>;
  processCode: Pick<ProcessCode, 'onExit'>;
  threadTimes: Pick<ThreadTimes, 'onThread'>;
  /** Looks for runtimes in files before a sample comes to them. */
  read(files: readonly string[]): void;
}

export class RecordTakers implements RecordConsumer {
  readonly #parts: RecordParts;
  readonly #dispatch: RecordDispatch;
  readonly #toName = new TracesToName();
  readonly #newPrograms = new NewPrograms();

  constructor(parts: RecordParts, warn: (message: string) => void) {
    this.#parts = parts;
    const { traces, executables, attached, runtimes } = parts;
    this.#dispatch = new RecordDispatch(
      {
        [RecordType.SAMPLE]: (buffer, at, size) => traces.onSample(buffer, at, size),
        [RecordType.TRACE]: (buffer, at, size) => this.#onTrace(buffer, at, size),
        [RecordType.PROCESS]: (buffer, at, size) =>
          this.#onceNamed(readProcessRecord(buffer, at, size), (record) => this.#onProcess(record)),
        [RecordType.EXIT]: (buffer, at) =>
          this.#onceNamed(readExitRecord(buffer, at), (record) => this.#onExit(record)),
        [RecordType.FILE]: (buffer, at, size) => executables.onFile(readFileRecord(buffer, at, size)),
        [RecordType.THREAD]: (buffer, at, size) => parts.threadTimes.onThread(buffer, at, size),
        [RecordType.RUNTIME]: (buffer, at) => attached.onDetected(readRuntimeRecord(buffer, at)),
        [RecordType.FUNCTION]: (buffer, at, size) =>
          runtimes.onFunction(readFunctionRecord(buffer, at, size)),
      },
      warn,
    );
  }

  get stats(): RecordDispatch['stats'] {
    return this.#dispatch.stats;
  }

  beginBatch(): void {
    this.#parts.runtimes.beginBatch();
  }

  onRecord(buffer: Buffer, at: number, size: number): Steps | undefined {
    return this.#dispatch.take(buffer, at, size);
  }

  endBatch(): Steps | undefined {
    return this.#nameTraces();
  }

  drained(): void {
    this.#parts.traces.drained();
  }

  #onTrace(buffer: Buffer, at: number, size: number): void {
    const { traces, store } = this.#parts;
    const ofProcess = traces.onTrace(buffer, at, size);
    if (ofProcess) this.#toName.add(ofProcess, store.read(ofProcess).pid);
  }

  #nameTraces(): Steps | undefined {
    const ids = this.#toName.take();
    return ids.length > 0
      ? this.#dispatch.guard(RecordType.TRACE, this.#parts.stacks.resolveNow(ids))
      : undefined;
  }

  /** Runs `take` after the traces that are under way have names: they need what is known of the process. */
  #onceNamed<T extends { pid: Pid }>(record: T, take: (record: T) => void): Steps | undefined {
    const steps = this.#toName.has(record.pid) ? this.#nameTraces() : undefined;
    if (steps) return followedBy(steps, () => take(record));
    take(record);
    return undefined;
  }

  #onProcess(record: ProcessRecord): void {
    this.#parts.processes.onProcess(record);
    if (record.hasExecutable) this.#parts.contexts?.onProcess(record);
    this.#parts.views.forget(record.pid);
    this.#forgetProcess(record.pid);
    if (this.#newPrograms.isNew(record.executablePath)) this.#parts.read([`/proc/${record.pid}/exe`]);
  }

  #onExit(record: ExitRecord): void {
    this.#parts.processes.onExit(record);
    this.#parts.contexts?.onExit(record);
    this.#forgetProcess(record.pid);
    this.#parts.jit.onExit(record);
    this.#parts.processCode.onExit(record);
  }

  /** Evicts what is known of a program that ran under this PID. */
  #forgetProcess(pid: Pid): void {
    this.#parts.attached.forget(pid);
    this.#parts.runtimes.forget(pid);
    this.#parts.sourceMaps?.forgetProcess(pid);
    this.#parts.pdbs.forgetProcess(pid);
  }
}

function* followedBy(steps: Steps, act: () => void): Generator<void, void> {
  yield* steps;
  act();
}
