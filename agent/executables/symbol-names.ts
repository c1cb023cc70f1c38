/** Names of native addresses: asks the symbol worker, and gives it the file when it needs one. */
import type { SymbolFrame } from '../../common/symbols/source.ts';
import type { Executable } from './executable.ts';
import { closeKept, type KeptFile, type KeptFiles } from './kept-files.ts';
import { openRootOf, openVerified } from './open-file.ts';
import type { SymbolAnswer, SymbolDetail, SymbolRequest } from './symbol-service.ts';
import { WorkerClient, WorkerFailure } from './worker-client.ts';

/** Two report intervals and a bit: it lives on while each of them brings something new, and then ends. */
const IDLE_MS = 12_000;
const TIMEOUT_MS = 30_000;
const HEAP_MB = 256;

/** The compiled worker, also when this module runs from its source (in tests). */
function workerUrl(): URL {
  const compiled = import.meta.url.endsWith('.js');
  return new URL(
    compiled ? './symbol-worker.js' : '../../dist/agent/executables/symbol-worker.js',
    import.meta.url,
  );
}

export class SymbolNames {
  readonly stats = {
    asked: 0,
    named: 0,
    /** Addresses of files that could not be opened again. */
    fileGone: 0,
    /** Addresses of files without readable symbol tables. */
    unreadable: 0,
    /** Addresses of files that took the worker down, or too long. */
    workerFailed: 0,
    /** Other files that executables named for their symbols. */
    debugFilesOpened: 0,
    /** Those that are no regular files, lie out of the process's reach, or that the executable's owner may not read. */
    debugFilesRefused: 0,
    /** Compressed symbol tables (.gnu_debugdata) that can't be read, or exceed a limit. */
    miniDebugInfoDamaged: 0,
  };
  readonly #kept: KeptFiles;
  readonly #detail: SymbolDetail;
  readonly #worker: WorkerClient<SymbolRequest, SymbolAnswer>;

  constructor(kept: KeptFiles, detail: SymbolDetail) {
    this.#kept = kept;
    this.#detail = detail;
    this.#worker = new WorkerClient({
      url: workerUrl(),
      idleMs: IDLE_MS,
      timeoutMs: TIMEOUT_MS,
      maxHeapMb: HEAP_MB,
    });
  }

  /** The functions at ELF virtual addresses, innermost first; none where nothing covers one. Never rejects. */
  async resolve(executable: Executable, addresses: number[]): Promise<SymbolFrame[][]> {
    if (this.#detail === 'off') return addresses.map(() => []);
    this.stats.asked += addresses.length;
    const names = await this.#ask(executable, addresses);
    return names ?? addresses.map(() => []);
  }

  stop(): Promise<void> {
    return this.#worker.stop();
  }

  async #ask(executable: Executable, addresses: number[]): Promise<SymbolFrame[][] | undefined> {
    if (executable.symbolsBroken) {
      this.stats.workerFailed += addresses.length;
      return undefined;
    }
    try {
      const answer = await this.#request(executable, Float64Array.from(addresses));
      return this.#read(answer, addresses.length);
    } catch (error) {
      // What took the worker down once is not tried again.
      executable.symbolsBroken = !(error instanceof WorkerFailure && error.reason === 'stopped');
      this.stats.workerFailed += addresses.length;
      return undefined;
    }
  }

  #read(answer: SymbolAnswer | undefined, count: number): SymbolFrame[][] | undefined {
    if (!answer || answer.kind === 'need-file') {
      this.stats.fileGone += count;
      return undefined;
    }
    if (answer.kind === 'unreadable') {
      this.stats.unreadable += count;
      return undefined;
    }
    this.stats.debugFilesOpened += answer.debugFiles.opened;
    this.stats.debugFilesRefused += answer.debugFiles.refused;
    this.stats.miniDebugInfoDamaged += answer.debugFiles.damaged;
    for (const { length } of answer.chains) if (length > 0) this.stats.named++;
    return this.#detail === 'full' ? answer.chains : answer.chains.map(outermost);
  }

  /** Undefined where the worker needs the file and the file can't be had any more. */
  async #request(executable: Executable, addresses: Float64Array): Promise<SymbolAnswer | undefined> {
    const { key, fileId, bytes, path } = executable;
    if (bytes) return this.#worker.request({ fileId, bytes, path, addresses });
    const kept = await this.#kept.use(key, (file) =>
      this.#worker.request({ fileId, ...file, path, addresses }),
    );
    if (kept) return kept;
    const cached = await this.#worker.request({ fileId, path, addresses });
    if (cached.kind !== 'need-file' || !(await this.#reopen(executable))) return cached;
    return this.#kept.use(key, (file) => this.#worker.request({ fileId, ...file, path, addresses }));
  }

  /** Opens the file once more where it was found first, or below our own root, if it is still the same. */
  async #reopen({ key, path, openedPath, identity }: Executable): Promise<boolean> {
    for (const place of new Set([openedPath, path])) {
      if (!place.startsWith('/')) continue;
      const opened = await openVerified(place, identity);
      if (opened.kind !== 'opened') continue;
      const file: KeptFile = { fd: opened.fd, root: await openRootOf(opened.path) };
      if (this.#kept.has(key)) closeKept(file);
      else this.#kept.put(key, file);
      return true;
    }
    return false;
  }
}

/** The function alone. */
const outermost = (frames: SymbolFrame[]): SymbolFrame[] =>
  frames.slice(-1).map((frame) => ({ ...frame, file: '', line: 0, column: 0 }));
