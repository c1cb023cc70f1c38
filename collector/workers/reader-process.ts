/**
 * A process that reads one kind of strangers' files for the collector: its end, at V8's heap limit or for what it takes
 * outside the heap, is not the collector's. See docs/decisions/collector/reader-processes.md.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface ReaderLimits {
  /** Of V8, in MiB. */
  heapMiB: number;
  /** All that it holds, its code included. */
  residentMiB: number;
}

const LIMITS: ReaderLimits = { heapMiB: 768, residentMiB: 1024 };
const MIB = 2 ** 20;
const WATCH_MS = 100;
/** A reader may work for so long on one file or question. */
export const MAX_READ_MS = 60_000;

/** `ipc`: talks in messages; otherwise it reads standard input and writes standard output. */
export type ReaderTalk = 'ipc' | 'streams';

/** Started readers of a script, with what to say of one that ended. */
export class ReaderProcess {
  readonly child: ChildProcess;
  #why: string | undefined;
  #isEnded = false;

  readonly #limits: ReaderLimits;

  /** `script`: the compiled one. */
  constructor(script: URL, args: readonly string[], talk: ReaderTalk, limits = LIMITS) {
    this.#limits = limits;
    const flags = [`--max-old-space-size=${limits.heapMiB}`, '--max-semi-space-size=16', '--no-warnings'];
    this.child = spawn(process.execPath, [...flags, script.pathname, ...args], {
      env: {},
      cwd: '/',
      stdio: talk === 'ipc' ? ['ignore', 'ignore', 'ignore', 'ipc'] : ['pipe', 'pipe', 'ignore'],
      serialization: 'advanced',
    });
    const watch = setInterval(() => this.#checkMemory(), WATCH_MS).unref();
    const end = (): void => {
      this.#isEnded = true;
      clearInterval(watch);
    };
    this.child.once('exit', end);
    this.child.once('error', end);
  }

  /** Ends it; `why` is what `explainEnd` then says. */
  kill(why: string): void {
    this.#why ??= why;
    // One that could not be started for lack of descriptors has the PID 0 for Node's own `kill`: this process's group.
    if (!this.#isEnded && this.child.pid !== undefined) this.child.kill('SIGKILL');
  }

  /** Why it ended before its work was done. */
  explainEnd(code: number | null, signal: NodeJS.Signals | null): string {
    // V8 ends the process that comes to the limit of its heap so.
    if (this.#why === undefined && (signal === 'SIGABRT' || code === 134))
      return tooMuch(this.#limits.heapMiB);
    if (this.#why === undefined && signal === 'SIGKILL')
      return 'the system ended its reader for want of memory';
    return this.#why ?? `its reader ended with ${signal ?? `code ${code}`}`;
  }

  #checkMemory(): void {
    const { pid } = this.child;
    if (pid === undefined || this.#isEnded) return;
    const { residentMiB } = this.#limits;
    if (residentBytes(pid) > residentMiB * MIB) this.kill(tooMuch(residentMiB));
  }
}

const tooMuch = (mib: number): string => `it takes more than ${mib} MiB of memory`;

function residentBytes(pid: number): number {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return Number(kib ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** @param path of the compiled script below dist/collector; tests run this file itself, and that script */
export function readerScript(path: string): URL {
  const isCompiled = import.meta.url.endsWith('.js');
  return new URL(isCompiled ? `../${path}` : `../../dist/collector/${path}`, import.meta.url);
}
