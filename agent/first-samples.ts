/** Work that is done before sampling begins, so that the first samples are whole. */
import type { Pid } from '../common/base/brand.ts';
import { withTimeout } from './base/with-timeout.ts';
import type { Executables } from './executables/executables.ts';
import type { ProcessCode } from './jit/process-code.ts';
import { preloadTables } from './preload-tables.ts';
import type { ForeignFiles } from './processes/foreign-files.ts';
import type { ForeignReader } from './processes/foreign-reader.ts';
import { runningFiles } from './processes/mapped-files.ts';
import { mayHoldRuntime } from './runtimes/registry.ts';
import type { Tracer } from './tracer/tracer.ts';

export interface FirstSamplesOptions {
  /** Sample only these processes and their descendants, those that exist too; undefined: every process. */
  targets?: Pid[];
  /** Sample only processes of these cgroups and of those below them: paths, or names in them. */
  cgroups?: readonly string[] | undefined;
  /** None of the processes of these cgroups is sampled, chosen or not. */
  excludedCgroups?: readonly string[] | undefined;
  /** With either: files that they will run or run already. Their tables are made before sampling starts. */
  expectedFiles?: readonly string[];
}

interface Parts {
  tracer: Tracer;
  executables: Executables;
  files: ForeignFiles;
  reader: ForeignReader;
  processCode: ProcessCode;
}

/** At the start runtimes wait for each other, at most so long: the sampler is verified anew for each change. */
const GATHER_RUNTIMES_MS = 2000;
/** Until then sampling waits for the tables of what JITs have compiled in the targets. */
const LOOK_AHEAD_MS = 2000;
const FIRST_SAMPLES_MS = 2000;
const DRAIN_FIRST_MS = 10;

export class FirstSamples {
  readonly #options: FirstSamplesOptions;
  readonly #parts: Parts;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FirstSamplesOptions, parts: Parts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** Waits for what a person wants to see; of the whole machine runtimes are read while sampling begins. */
  async prepare(): Promise<void> {
    const { cgroups, expectedFiles } = this.#options;
    const { tracer, executables, files, reader, processCode } = this.#parts;
    const targets = this.#options.targets ?? (cgroups && tracer.targets());
    const paths = targets ? (expectedFiles ?? []) : runningFiles(mayHoldRuntime, reader);
    const reading = preloadTables(paths, tracer, executables, files);
    const looking = (targets ?? []).map((pid) => processCode.lookAhead(pid));
    if (targets) await Promise.all([reading, withTimeout(LOOK_AHEAD_MS, Promise.all(looking))]);
    else void tracer.samplers.gather(executables.runtimesKnown(GATHER_RUNTIMES_MS));
  }

  /** Their process is known by its first sample, which otherwise waits in the ring buffer for up to a second. */
  hasten(): void {
    const { tracer, processCode } = this.#parts;
    if (!processCode.isAhead) return;
    const end = performance.now() + FIRST_SAMPLES_MS;
    this.#timer = setInterval(() => {
      tracer.drain();
      if (!processCode.isAhead || performance.now() > end) this.stop();
    }, DRAIN_FIRST_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
