/**
 * One execution of a process that has code which no file backs: its sampled frames, and the files out of which they
 * get their names. Both come in any order: a JIT may write a function down long after it was first sampled.
 */

import type { JitCode, JitCodeStats } from '../../common/jit/jit-code.ts';
import { JitDump } from '../../common/jit/jitdump.ts';
import { PerfMap } from '../../common/jit/perf-map.ts';
import { readScriptFunction } from '../../common/jit/v8-names.ts';
import { emptyMapping, type Mapping } from '../../common/profile/model/profile.ts';
import { demangle } from '../../common/symbols/demangle/demangle.ts';
import type { SymbolFrame } from '../../common/symbols/source.ts';
import type { ForeignFiles } from '../processes/foreign-files.ts';
import type { ProcessIdentity } from '../records/records.ts';
import type { Frame } from '../traces/frame.ts';
import { FollowedFile } from './followed-file.ts';
import { type JitOwner, type JitRefusal, openJitDump, openPerfMap, readOwner } from './open-jit-file.ts';
import { RegisteredNames } from './registered-names.ts';
import { findJitDescriptor } from './registered-objects.ts';

export interface JitStats extends JitCodeStats, Record<JitRefusal, number> {
  /** Executions with frames in memory that no file backs. */
  processes: number;
  perfMaps: number;
  jitDumps: number;
  /** Processes that list their code for debuggers (`__jit_debug_descriptor`). */
  registered: number;
  /** Addresses that got a name, and names that gave way to newer ones. */
  named: number;
  renamed: number;
  /** Files longer than is read. */
  tooLong: number;
  /** Executions left because there were too many, or because they held too much. */
  evicted: number;
  /** Intervals that did not wait for all names. */
  late: number;
}

/** Functions of one file; each takes some 50 bytes. */
const MAX_FUNCTIONS = 150_000;
const FIRST_WAIT_MS = 1000;
const LAST_WAIT_MS = 60_000;
/** Names read in one go; the rest have to wait for the next. */
const MAX_NAMES_A_STEP = 2000;

const ANON: Mapping = { ...emptyMapping(), filename: '[anon]' };
const JIT: Mapping = { ...emptyMapping(), filename: '[jit]' };

interface JitFrame extends Frame {
  /** Where its name stands. */
  code: JitCode | undefined;
  place: number;
}

type Followed = FollowedFile | RegisteredNames;

interface Place {
  file: Followed;
  code: JitCode;
  place: number;
}

type FileKind = 'jitDumps' | 'perfMaps';
type Kind = FileKind | 'registered';
/** A jitdump comes first: it knows lines. What is registered for debuggers is not meant for profilers. */
const KINDS: readonly Kind[] = ['jitDumps', 'perfMaps', 'registered'];
const PARSERS: Record<FileKind, new (max: number, stats: JitCodeStats) => JitCode> = {
  jitDumps: JitDump,
  perfMaps: PerfMap,
};

export interface JitContext {
  files: ForeignFiles;
  proc: string;
  stats: JitStats;
  toUnixMs(boottimeNs: bigint): number;
  nowMs(): number;
}

export class JitProcess {
  readonly identity: ProcessIdentity;
  readonly #context: JitContext;
  readonly #frames = new Map<number, JitFrame>();
  readonly #unnamed = new Set<JitFrame>();
  readonly #files: Partial<Record<Kind, Followed>> = {};
  readonly #refused = new Set<JitRefusal>();
  #nextTryMs = 0;
  #waitMs = FIRST_WAIT_MS;

  constructor(identity: ProcessIdentity, context: JitContext) {
    this.identity = identity;
    this.#context = context;
    context.stats.processes++;
  }

  /** Of what is held beside the frames. */
  get byteLength(): number {
    return this.#open().reduce((sum, { code }) => sum + code.byteLength, 0);
  }

  get frameCount(): number {
    return this.#frames.size;
  }

  /** The same object for the same address; named by {@link update}. */
  frameOf(address: number): Frame {
    let frame = this.#frames.get(address);
    if (!frame) {
      frame = {
        mapping: ANON,
        address,
        frameType: 'native',
        lines: [],
        number: undefined,
        isChanged: true,
        code: undefined,
        place: -1,
      };
      this.#frames.set(address, frame);
      this.#unnamed.add(frame);
    }
    return frame;
  }

  forgetFrames(): void {
    this.#frames.clear();
    this.#unnamed.clear();
  }

  /** Opens what there is to open, reads what has grown, names frames and renames those whose code is another by now. */
  async update(): Promise<void> {
    let hasGrown = await this.#follow();
    if (this.#unnamed.size > 0 && (await this.#openFiles())) hasGrown = (await this.#follow()) || hasGrown;
    await this.#name(hasGrown ? this.#frames.values() : this.#unnamed);
  }

  close(): void {
    for (const file of this.#open()) file.close();
    for (const kind of KINDS) delete this.#files[kind];
  }

  #open(): Followed[] {
    return KINDS.map((kind) => this.#files[kind]).filter((file) => file !== undefined);
  }

  /** True where there is something new to read. */
  async #follow(): Promise<boolean> {
    let hasGrown = false;
    for (const file of this.#open()) {
      const growth = await file.follow();
      if (growth === 'too-long') this.#context.stats.tooLong++;
      if (growth !== 'same') hasGrown = true;
    }
    return hasGrown;
  }

  /** Less and less often where there is none: most JITs write no file. True where one was opened. */
  async #openFiles(): Promise<boolean> {
    const { proc, nowMs } = this.#context;
    const missing = KINDS.filter((kind) => this.#files[kind]?.wasUnlinked ?? true);
    if (missing.length === 0 || nowMs() < this.#nextTryMs) return false;
    this.#nextTryMs = nowMs() + this.#waitMs;
    this.#waitMs = Math.min(this.#waitMs * 2, LAST_WAIT_MS);
    const owner = readOwner(proc, this.identity);
    let hasOpened = false;
    if (owner) for (const kind of missing) hasOpened = (await this.#openFile(kind, owner)) || hasOpened;
    return hasOpened;
  }

  async #openFile(kind: Kind, owner: JitOwner): Promise<boolean> {
    if (kind === 'registered') return this.#findRegistered();
    const { files, proc, stats, toUnixMs } = this.#context;
    const { pid, startBoottimeNs } = this.identity;
    const opened =
      kind === 'jitDumps'
        ? await openJitDump(files, proc, pid, owner)
        : await openPerfMap(files, pid, owner, toUnixMs(startBoottimeNs));
    if (typeof opened === 'string') this.#refuse(opened);
    if (typeof opened !== 'number') return false;
    stats[kind]++;
    this.#files[kind]?.close();
    const file = { files, pid, fd: opened };
    this.#files[kind] = new FollowedFile(file, () => new PARSERS[kind](MAX_FUNCTIONS, stats));
    this.#waitMs = FIRST_WAIT_MS;
    return true;
  }

  async #findRegistered(): Promise<boolean> {
    const { files, stats } = this.#context;
    const { pid } = this.identity;
    const address = await findJitDescriptor(files, pid);
    if (address === undefined) return false;
    stats.registered++;
    this.#files.registered = new RegisteredNames({ files, pid, address }, MAX_FUNCTIONS, stats);
    return true;
  }

  /** Counted once for each reason. */
  #refuse(reason: JitRefusal): void {
    if (this.#refused.has(reason)) return;
    this.#refused.add(reason);
    this.#context.stats[reason]++;
  }

  async #name(frames: Iterable<JitFrame>): Promise<void> {
    let left = MAX_NAMES_A_STEP;
    for (const frame of [...frames]) {
      const found = this.#find(frame.address);
      if (!found || (found.code === frame.code && found.place === frame.place)) continue;
      if (left-- === 0) return;
      const name = await found.file.describe(found.place, frame.address);
      if (name === 'replaced') found.file.forget();
      else this.#put(frame, found, name);
    }
  }

  #find(address: number): Place | undefined {
    for (const file of this.#open()) {
      const { code } = file;
      const place = code.find(address);
      if (place !== undefined) return { file, code, place };
    }
    return undefined;
  }

  #put(frame: JitFrame, { code, place }: Place, name: SymbolFrame): void {
    const { stats } = this.#context;
    if (frame.code) stats.renamed++;
    else stats.named++;
    frame.code = code;
    frame.place = place;
    frame.mapping = JIT;
    const script = readScriptFunction(name.function);
    frame.frameType = script ? 'v8js' : 'native';
    frame.lines = [script ? { ...script, systemName: '', line: 0, column: 0 } : toLine(name)];
    frame.isChanged = true;
    this.#unnamed.delete(frame);
  }
}

/** JITs that compile C++ or Rust hand linker names on. */
function toLine({ function: name, file, line, column }: SymbolFrame): Frame['lines'][number] {
  const readable = demangle(name);
  return { function: readable, systemName: readable === name ? '' : name, file, line, column };
}
