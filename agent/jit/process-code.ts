/**
 * Executable memory of processes that no file backs, and how to unwind it: code of a file that the process has moved
 * there keeps its file's table and names, code of a JIT has a table of what that registered. Both are looked for when
 * such code is sampled, less and less often, and told to the kernel by process and start of the memory.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type FileKey, type Pid, toFileKey } from '../../common/base/brand.ts';
import type { NativeFile } from '../base/native.ts';
import { type FileIdentity, kernelDevice } from '../executables/files/open-file.ts';
import {
  closeFile,
  type ForeignFiles,
  fileReader,
  memoryReader,
  type ReadAt,
} from '../processes/foreign-files.ts';
import { parseStat, readSmallFile } from '../processes/proc-files.ts';
import { isMemory, type ProcessMapping, readMappings } from '../processes/process-maps.ts';
import type { FileRecord, ProcessCodeEntry, ProcessIdentity } from '../records/records.ts';
import { frameImage } from './frame-image.ts';
import { FrameSearch, REACH_BYTES } from './frame-search.ts';
import { findImage, isSameCode, offsetInFile, readHeader } from './moved-text.ts';

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
  /** Makes the table of an ELF image that is not a file; false where it says nothing. */
  installImage(key: FileKey, image: Uint8Array): Promise<boolean>;
  forget(key: FileKey): void;
}

/** A table that is in the kernel under a key that nothing leads to yet. */
interface MadeTable {
  key: FileKey;
  /** Of what it was made of. */
  digest: string;
  delta: number;
}

/** Of a process that is about to be sampled: who it is the kernel says with its first sample. */
interface LookedAhead {
  startTicks: bigint;
  descriptor: number | undefined;
  tables: { mapping: ProcessMapping; table: MadeTable }[];
}

interface CodeOfProcess {
  identity: ProcessIdentity;
  /** Sampled, and not looked at since. */
  wanted: Set<number>;
  /** Start of memory to the key under which its table is. */
  ranges: Map<number, { key: FileKey; digest: string }>;
  /** Of what is registered for debuggers, once it was found. */
  descriptor: number | undefined;
  nextLookMs: number;
  waitMs: number;
  timer: NodeJS.Timeout | undefined;
}

const MAX_PROCESSES = 128;
const MAX_WANTED = 256;
const MAX_RANGES = 64;
const FIRST_WAIT_MS = 500;
const LAST_WAIT_MS = 60_000;
/** Code that is read for its instructions, too. */
const MAX_CODE_BYTES = 4 << 20;
/** Code beside that which was sampled: it will be on the same stacks. */
const MAX_NEIGHBOURS = 16;
const TICK_NS = 10_000_000n;
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
  readonly #ahead = new Map<Pid, LookedAhead>();
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
      this.#takeAhead(process);
    }
    if (process.wanted.size < MAX_WANTED) process.wanted.add(address);
    this.#schedule(process);
  }

  /** Makes tables for code of JITs in a process that is about to be sampled, so that its first samples are whole. */
  async lookAhead(pid: Pid): Promise<void> {
    const startTicks = startOf(this.#proc, pid);
    if (startTicks === undefined || this.#stopped) return;
    const mappings = await readMappings(pid, this.#files);
    const memory = memoryReader(this.#files, pid);
    const search = new FrameSearch({ files: this.#files, pid, mappings }, 'unknown');
    const tables: LookedAhead['tables'] = [];
    for (const [index, mapping] of mappings.entries()) {
      if (tables.length >= MAX_NEIGHBOURS || !isCodeWithoutFile(mapping) || findImage(mappings, index))
        continue;
      const table = await this.#makeTable(`${pid} ${startTicks}`, mapping, { search, memory });
      if (table) tables.push({ mapping, table });
    }
    const { descriptor } = search;
    if (tables.length > 0) this.#ahead.set(pid, { startTicks, descriptor, tables });
  }

  /** Tables wait for the first sample of their process. */
  get isAhead(): boolean {
    return this.#ahead.size > 0;
  }

  #takeAhead(process: CodeOfProcess): void {
    const { pid, startBoottimeNs } = process.identity;
    const ahead = this.#ahead.get(pid);
    this.#ahead.delete(pid);
    if (ahead?.startTicks !== startBoottimeNs / TICK_NS) return;
    process.descriptor = ahead.descriptor;
    for (const { mapping, table } of ahead.tables) this.#useTable(process, mapping, table);
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
    for (const start of process.ranges.keys()) this.#withdraw(process, start);
  }

  #withdraw({ identity, ranges }: CodeOfProcess, start: number): void {
    const { key, digest } = ranges.get(start)!;
    ranges.delete(start);
    this.#tables.withdraw(identity, start);
    if (digest !== '') this.#tables.forget(key);
  }

  /** Other code that comes to lie there has no use for the table. */
  #withdrawUnmapped(process: CodeOfProcess, mappings: readonly ProcessMapping[]): void {
    // code that is being written is not executable for a while
    const memory = new Set(mappings.filter(isMemory).map(({ start }) => start));
    for (const start of process.ranges.keys()) if (!memory.has(start)) this.#withdraw(process, start);
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
    if (mappings.length === 0) {
      this.stats.unreadable++;
      return;
    }
    this.#withdrawUnmapped(process, mappings);
    const memory = memoryReader(this.#files, pid);
    // it costs what a search for frames does, and who has registered those rarely has one
    const descriptor = process.descriptor ?? (process.ranges.size === 0 ? 'unknown' : undefined);
    const search = new FrameSearch({ files: this.#files, pid, mappings }, descriptor);
    const seen = new Set<number>();
    for (const address of [...wanted, ...neighboursOf(wanted, mappings, process)]) {
      const index = mappings.findIndex(({ start, end }) => address >= start && address < end);
      const mapping = mappings[index];
      if (!mapping || !isCodeWithoutFile(mapping) || seen.has(mapping.start)) continue;
      seen.add(mapping.start);
      if (!process.ranges.has(mapping.start) && process.ranges.size >= MAX_RANGES) continue;
      const image = findImage(mappings, index);
      if (image) await this.#findMovedText(process, mapping, { image, address, memory });
      // it registers nothing, and searching the heap of a runtime costs more than all else that is done for it
      else if (!this.#tables.hasRuntime(pid)) await this.#findJitFrames(process, mapping, { search, memory });
    }
    process.descriptor = search.descriptor;
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
    if (!this.#isKnown(process)) return;
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
    mapping: ProcessMapping,
    from: { search: FrameSearch; memory: ReadAt },
  ): Promise<void> {
    const { pid, startBoottimeNs } = process.identity;
    const before = process.ranges.get(mapping.start);
    const table = await this.#makeTable(`${pid} ${startBoottimeNs / TICK_NS}`, mapping, from, before);
    if (!table) return;
    if (!this.#isKnown(process) || this.#stopped) this.#tables.forget(table.key);
    else this.#useTable(process, mapping, table);
  }

  /** Undefined where there is none, or it is the one `before`. */
  async #makeTable(
    owner: string,
    mapping: ProcessMapping,
    { search, memory }: { search: FrameSearch; memory: ReadAt },
    before?: { key: FileKey; digest: string },
  ): Promise<MadeTable | undefined> {
    const frames = await search.framesOf(mapping);
    if (!frames) return undefined;
    // a debugger is told of all that there is
    const bytes = frames.isEhFrame ? await readCode(mapping, memory) : Buffer.alloc(0);
    const digest = createHash('sha256').update(frames.bytes).update(bytes).digest('hex');
    if (before?.digest === digest && this.#tables.hasTable(before.key)) return undefined;
    const key = keyOf('jit', `${owner} ${mapping.start} ${mapping.end} ${digest}`);
    const image = frameImage(ELF_MACHINE, { ...mapping, bytes }, frames);
    if (!(await this.#tables.installImage(key, image.bytes))) return undefined;
    return { key, digest, delta: image.codeOffset - mapping.start };
  }

  #useTable(process: CodeOfProcess, mapping: ProcessMapping, { key, digest, delta }: MadeTable): void {
    const before = process.ranges.get(mapping.start);
    if (!this.#publish(process, mapping.start, { key, delta, isJit: true })) {
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
  descriptor: undefined,
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

/** Nothing where it is too much, or can't all be read. */
async function readCode({ start, end }: ProcessMapping, memory: ReadAt): Promise<Buffer> {
  if (end - start > MAX_CODE_BYTES) return Buffer.alloc(0);
  const bytes = Buffer.alloc(end - start);
  return (await memory(start, bytes)) === bytes.length ? bytes : Buffer.alloc(0);
}

const isCodeWithoutFile = (mapping: ProcessMapping): boolean => mapping.isExecutable && isMemory(mapping);

/** Where code begins that lies near what is wanted and has no table. */
function neighboursOf(
  wanted: readonly number[],
  mappings: readonly ProcessMapping[],
  { ranges }: CodeOfProcess,
): number[] {
  return mappings
    .filter((mapping) => isCodeWithoutFile(mapping) && !ranges.has(mapping.start))
    .map(({ start }) => start)
    .filter((start) => wanted.some((address) => Math.abs(address - start) < REACH_BYTES))
    .slice(0, MAX_NEIGHBOURS);
}

function startOf(proc: string, pid: Pid): bigint | undefined {
  return parseStat(readSmallFile(`${proc}/${pid}/stat`) ?? '')?.startTicks;
}
