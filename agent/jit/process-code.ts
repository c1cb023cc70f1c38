/**
 * Executable memory of processes that no file backs, and how to unwind it: code of a file that the process has moved
 * there keeps its file's table and names, code of a JIT has a table of what that registered. Both are looked for when
 * such code is sampled, less and less often, and told to the kernel by process and start of the memory.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type FileKey, type Pid, toFileKey } from '../../common/base/brand.ts';
import { type FileIdentity, kernelDevice } from '../executables/open-file.ts';
import {
  closeFile,
  type ForeignFiles,
  fileReader,
  memoryReader,
  type ReadAt,
} from '../processes/foreign-files.ts';
import { type ProcessMapping, readMappings } from '../processes/process-maps.ts';
import type { NativeFile } from '../tracer/native.ts';
import type { FileRecord, ProcessIdentity } from '../tracer/records.ts';
import { CODE_OFFSET, frameImage } from './frame-image.ts';
import { findImage, isSameCode, offsetInFile, readHeader } from './moved-text.ts';
import { findFrameLists, joinLists, type MemoryPart } from './registered-frames.ts';

export interface ProcessCodeEntry {
  process: ProcessIdentity;
  /** Where the memory begins. */
  start: number;
  key: FileKey;
  /** Added to an address it gives the offset in the file of that key. */
  delta: number;
  isJit: boolean;
}

/** What this needs of the agent. */
export interface CodeTables {
  /** False where the kernel's map is full. */
  publish(entry: ProcessCodeEntry): boolean;
  withdraw(process: ProcessIdentity, start: number): void;
  /** Of a file that is known already. */
  keyOf(identity: FileIdentity): FileKey | undefined;
  /** In the kernel now; the least used leave. */
  hasTable(key: FileKey): boolean;
  /** A runtime is attached to there whose compiled code has no file: what it leaves over are its stubs. */
  hasRuntime(pid: Pid): boolean;
  onFile(record: FileRecord): void;
  /** Makes the table of an ELF image that is no file; false where it says nothing. */
  installImage(key: FileKey, image: Uint8Array): Promise<boolean>;
  forget(key: FileKey): void;
}

interface CodeOfProcess {
  identity: ProcessIdentity;
  /** Sampled, and not looked at since. */
  wanted: Set<number>;
  /** Start of memory to the key under which its table is. */
  ranges: Map<number, { key: FileKey; digest: string }>;
  nextLookMs: number;
  waitMs: number;
  timer: NodeJS.Timeout | undefined;
}

const MAX_PROCESSES = 128;
const MAX_WANTED = 256;
const MAX_RANGES = 64;
const FIRST_WAIT_MS = 500;
const LAST_WAIT_MS = 60_000;
/** A JIT's unwind information refers to its code by distances of 32 bits. */
const REACH_BYTES = 64 << 20;
const MAX_SEARCHED_BYTES = 16 << 20;
const MAX_PART_BYTES = 4 << 20;
const ELF_MACHINE = process.arch === 'arm64' ? 183 : 62;

export class ProcessCode {
  readonly stats = {
    /** Times that a process's memory was looked at. */
    looks: 0,
    /** Memory that has the table of the file whose code is in it, and such that holds other code than its file. */
    movedText: 0,
    movedTextDiffers: 0,
    /** Tables made of what JITs have registered. */
    jitTables: 0,
    /** Processes or memory that could not be read. */
    unreadable: 0,
    full: 0,
  };
  readonly #tables: CodeTables;
  readonly #files: ForeignFiles;
  readonly #proc: string;
  readonly #byPid: LRUCache<number, CodeOfProcess>;
  /** One after the other. */
  #looking: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(tables: CodeTables, files: ForeignFiles, proc = '/proc') {
    this.#tables = tables;
    this.#files = files;
    this.#proc = proc;
    this.#byPid = new LRUCache({ max: MAX_PROCESSES, dispose: (process) => this.#forget(process) });
  }

  /** Code at that address was sampled for the first time, and it has no table. */
  onAddress(identity: ProcessIdentity, address: number): void {
    if (this.#stopped) return;
    let process = this.#byPid.get(identity.pid);
    if (!process || !isSame(process.identity, identity)) {
      process = newProcess(identity);
      this.#byPid.set(identity.pid, process);
    }
    if (process.wanted.size < MAX_WANTED) process.wanted.add(address);
    this.#schedule(process);
  }

  onExit(identity: ProcessIdentity): void {
    const process = this.#byPid.get(identity.pid);
    if (process && isSame(process.identity, identity)) this.#byPid.delete(identity.pid);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { timer } of this.#byPid.values()) clearTimeout(timer);
    await this.#looking;
  }

  #schedule(process: CodeOfProcess): void {
    if (process.timer !== undefined) return;
    const delay = Math.max(0, process.nextLookMs - performance.now());
    process.timer = setTimeout(() => {
      this.#looking = this.#looking
        .then(() => this.#look(process))
        // the process has ended, or its memory can't be read
        .catch(() => void this.stats.unreadable++)
        .finally(() => {
          process.timer = undefined;
          if (process.wanted.size > 0 && !this.#stopped && this.#isKnown(process)) this.#schedule(process);
        });
    }, delay).unref();
  }

  #isKnown(process: CodeOfProcess): boolean {
    return this.#byPid.peek(process.identity.pid) === process;
  }

  #forget(process: CodeOfProcess): void {
    clearTimeout(process.timer);
    for (const [start, { key, digest }] of process.ranges) {
      this.#tables.withdraw(process.identity, start);
      if (digest !== '') this.#tables.forget(key);
    }
    process.ranges.clear();
  }

  async #look(process: CodeOfProcess): Promise<void> {
    if (this.#stopped || !this.#isKnown(process)) return;
    this.stats.looks++;
    const wanted = [...process.wanted];
    process.wanted.clear();
    process.nextLookMs = performance.now() + process.waitMs;
    process.waitMs = Math.min(process.waitMs * 2, LAST_WAIT_MS);
    const { pid } = process.identity;
    const mappings = await readMappings(pid, this.#files);
    if (mappings.length === 0) this.stats.unreadable++;
    const memory = memoryReader(this.#files, pid);
    const seen = new Set<number>();
    for (const address of wanted) {
      const index = mappings.findIndex(({ start, end }) => address >= start && address < end);
      const mapping = mappings[index];
      if (!mapping?.isExecutable || mapping.path !== '' || seen.has(mapping.start)) continue;
      seen.add(mapping.start);
      if (!process.ranges.has(mapping.start) && process.ranges.size >= MAX_RANGES) continue;
      const image = findImage(mappings, index);
      if (image) await this.#findMovedText(process, mapping, { image, address, memory });
      // it registers nothing, and searching the heap of a runtime costs more than all else that is done for it
      else if (!this.#tables.hasRuntime(pid)) await this.#findJitFrames(process, mappings, mapping, memory);
    }
  }

  async #findMovedText(
    process: CodeOfProcess,
    mapping: ProcessMapping,
    { image, address, memory }: { image: ProcessMapping; address: number; memory: ReadAt },
  ): Promise<void> {
    const { pid } = process.identity;
    const range = `${image.start.toString(16)}-${image.end.toString(16)}`;
    const link = `${this.#proc}/${pid}/map_files/${range}`;
    const found = await this.#files.lookAt(link, true, { pid, device: image.device });
    // no regular file, or it can't be opened
    if (typeof found === 'number' || found.fd < 0) return;
    try {
      const file = fileReader(this.#files, pid, found.fd);
      const offset = offsetInFile(await readHeader(file), image, mapping.start);
      if (offset === undefined) return;
      if (await isSameCode(mapping, address, { memory, file, offset }))
        this.#publishMovedText(process, mapping, { image, found, offset });
      else this.stats.movedTextDiffers++;
    } finally {
      closeFile(found);
    }
  }

  #publishMovedText(
    process: CodeOfProcess,
    mapping: ProcessMapping,
    { image, found, offset }: { image: ProcessMapping; found: NativeFile; offset: number },
  ): void {
    const { ino: inode, size, ctimeNs, dev } = found;
    const identity = { inode, size, ctimeNs, device: kernelDevice(dev) };
    const key = this.#tables.keyOf(identity) ?? keyOf('moved', Object.values(identity).join(' '));
    if (!this.#publish(process, mapping.start, { key, delta: offset - mapping.start, isJit: false })) return;
    process.ranges.set(mapping.start, { key, digest: '' });
    if (this.#tables.hasTable(key)) return;
    this.stats.movedText++;
    this.#tables.onFile({
      ...identity,
      key,
      pid: process.identity.pid,
      generation: 0,
      vmaStart: BigInt(image.start),
      vmaEnd: BigInt(image.end),
      vmaOffset: BigInt(image.offset),
      path: image.path,
    });
  }

  async #findJitFrames(
    process: CodeOfProcess,
    mappings: readonly ProcessMapping[],
    mapping: ProcessMapping,
    memory: ReadAt,
  ): Promise<void> {
    const lists = await searchNear(mappings, mapping, memory);
    if (lists.length === 0) return;
    const frames = joinLists(lists);
    const digest = createHash('sha256').update(frames.bytes).digest('hex');
    const before = process.ranges.get(mapping.start);
    if (before?.digest === digest && this.#tables.hasTable(before.key)) return;
    const { pid, startBoottimeNs } = process.identity;
    const key = keyOf('jit', `${pid} ${startBoottimeNs} ${mapping.start} ${mapping.end} ${digest}`);
    if (!(await this.#tables.installImage(key, frameImage(ELF_MACHINE, mapping, frames)))) return;
    const isThere = this.#isKnown(process) && !this.#stopped;
    if (
      !isThere ||
      !this.#publish(process, mapping.start, { key, delta: CODE_OFFSET - mapping.start, isJit: true })
    ) {
      this.#tables.forget(key);
      return;
    }
    process.ranges.set(mapping.start, { key, digest });
    if (before && before.key !== key) this.#tables.forget(before.key);
    // more is registered as more is compiled
    process.waitMs = FIRST_WAIT_MS;
    this.stats.jitTables++;
  }

  #publish(
    { identity }: CodeOfProcess,
    start: number,
    entry: Omit<ProcessCodeEntry, 'process' | 'start'>,
  ): boolean {
    const isPublished = this.#tables.publish({ process: identity, start, ...entry });
    if (!isPublished) this.stats.full++;
    return isPublished;
  }
}

const newProcess = (identity: ProcessIdentity): CodeOfProcess => ({
  identity,
  wanted: new Set(),
  ranges: new Map(),
  nextLookMs: 0,
  waitMs: FIRST_WAIT_MS,
  timer: undefined,
});

const isSame = (a: ProcessIdentity, b: ProcessIdentity): boolean =>
  a.execId === b.execId && a.startBoottimeNs === b.startBoottimeNs;

/** Of what the kernel forms no key of; bit 8 is set in its own, too, and no other key is below it. */
const keyOf = (kind: string, text: string): FileKey => {
  const digest = createHash('sha256').update(`${kind} ${text}`).digest();
  return toFileKey((digest.readBigUInt64LE() | 0x100n).toString(16).padStart(16, '0'));
};

/** Readable memory around the code that no file backs, the nearest first. */
async function searchNear(
  mappings: readonly ProcessMapping[],
  code: ProcessMapping,
  memory: ReadAt,
): Promise<MemoryPart[]> {
  const distance = ({ start }: ProcessMapping): number => Math.abs(start - code.start);
  const near = mappings
    .filter((m) => m.isReadable && m.path === '' && distance(m) < REACH_BYTES)
    .sort((a, b) => distance(a) - distance(b));
  const lists: MemoryPart[] = [];
  let left = MAX_SEARCHED_BYTES;
  for (const { start, end } of near) {
    const bytes = Buffer.alloc(Math.min(end - start, MAX_PART_BYTES, left));
    if (bytes.length === 0) break;
    left -= bytes.length;
    const bytesRead = await memory(start, bytes);
    lists.push(...findFrameLists({ start, bytes: bytes.subarray(0, bytesRead) }));
  }
  return lists.sort((a, b) => a.start - b.start);
}
