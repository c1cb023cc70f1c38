import type { FileId } from '../../common/base/brand.ts';
import { kernelFileId } from '../../common/symbols/kernel/kernel-file-id.ts';
import type { DetectedRuntime } from '../interpreters/contract.ts';
import { isVerified } from '../runtimes/verified.ts';
import type { TableResult } from '../stack-deltas/table/table-builder.ts';
import type { ExecutableStates } from './executable-states.ts';
import { type Executable, loadedSegments } from './files/executable.ts';
import type { TableSink } from './table-sink.ts';

type Built = Extract<TableResult, { kind: 'built' }>['executable'];

export interface TableInstallerOptions {
  tables: TableSink;
  states: ExecutableStates;
  /** A language runtime was found in a file. */
  onRuntime: (runtime: DetectedRuntime, path: string) => void;
  /** The language runtime of a file can't be unwound; `problem` says why, for people. */
  onUnsupportedRuntime: (problem: string, path: string) => void;
}

/** Brings to the kernel what was read of a file: its table, and before it what a language runtime in it needs there. */
export class TableInstaller {
  readonly stats = {
    installed: 0,
    noTable: 0,
    notElf: 0,
    /** Contradictory, or it took the worker down. */
    broken: 0,
    installFailed: 0,
    badFdes: 0,
    /** With rules of a debug file. */
    separateRules: 0,
    /** Files with a language runtime that is unwound, and such with one that can't be. */
    runtimes: 0,
    runtimesUnsupported: 0,
    /** So damaged that it can't be told whether a language runtime is in them. */
    runtimesUnreadable: 0,
    /** Runtimes that are unwound, in a version that the agent was not tested with. */
    runtimesUnverified: 0,
  };
  readonly #options: TableInstallerOptions;

  constructor(options: TableInstallerOptions) {
    this.#options = options;
  }

  /** A runtime was found in a file whose table is still being made. */
  announce(executable: Executable, runtime: DetectedRuntime): void {
    // what is known of processes hangs on the object that was announced
    if (executable.runtime?.version === runtime.version) return;
    executable.runtime = runtime;
    void this.#options.tables.announce(executable.key, runtime).catch(() => {});
  }

  /** Never rejects where the sink does: the executable's state says what became of it. */
  async install(executable: Executable, result: TableResult): Promise<void> {
    const { tables, states } = this.#options;
    executable.builtAt = performance.now();
    executable.failures = 0;
    if (result.kind !== 'built') {
      this.stats[result.kind === 'not-elf' ? 'notElf' : 'broken']++;
      states.giveUp(executable, 'not-elf', result.reason);
      return;
    }
    const { table, runtime } = result.executable;
    this.#note(executable, result.executable);
    if (!table) {
      this.stats.noTable++;
      states.giveUp(executable, 'no-table', 'it has no unwind information');
      return;
    }
    try {
      await tables.install(executable.key, table, runtime);
      this.stats.installed++;
      executable.state = 'ready';
      executable.reason = '';
    } catch (error) {
      this.stats.installFailed++;
      states.giveUp(executable, 'no-table', (error as Error).message);
    }
  }

  #note(executable: Executable, built: Built): void {
    executable.fileId = fileIdOf(executable, built);
    executable.gnuBuildId = built.gnuBuildId;
    executable.goBuildId = built.goBuildId;
    executable.goCode = built.goCode;
    executable.segments = loadedSegments(built.segments);
    executable.mappings = undefined;
    this.stats.badFdes += built.badFdes;
    if (built.usesSeparate) this.stats.separateRules++;
    this.#noteRuntime(executable, built);
  }

  #noteRuntime(executable: Executable, { runtime, runtimeProblem, runtimeDamage }: Built): void {
    const { onRuntime, onUnsupportedRuntime } = this.#options;
    if (executable.runtime?.version !== runtime?.version) executable.runtime = runtime;
    if (runtime) {
      this.stats.runtimes++;
      if (!isVerified(runtime)) this.stats.runtimesUnverified++;
      onRuntime(runtime, executable.path);
    }
    if (runtimeProblem !== '') {
      this.stats.runtimesUnsupported++;
      onUnsupportedRuntime(runtimeProblem, executable.path);
    }
    if (runtimeDamage !== '') this.stats.runtimesUnreadable++;
  }
}

/** A copy lacks the file's end, which the file ID is made of, too: so it gets the ID of an image that is not a file. */
const fileIdOf = ({ copiedFrom }: Executable, built: { fileId: string; gnuBuildId: string }): FileId =>
  (copiedFrom && kernelFileId(built.gnuBuildId)) || (built.fileId as FileId);
