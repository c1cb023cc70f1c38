/**
 * The running kernel as an executable: its symbols, its modules, and their build IDs. Modules and BPF programs
 * come and go; `refresh` follows them at a bounded cost.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { emptyMapping, type Mapping } from '../../../common/profile/model/profile.ts';
import { findGnuBuildId } from '../../../common/symbols/build-id-note.ts';
import { KallsymsReader } from '../../../common/symbols/kernel/kallsyms.ts';
import { kernelFileId } from '../../../common/symbols/kernel/kernel-file-id.ts';
import { isPseudo, type ModuleRange, parseModules } from '../../../common/symbols/kernel/kernel-images.ts';
import {
  buildKernelSymbols,
  type KernelSymbol,
  type KernelSymbols,
  parseKallsyms,
} from '../../../common/symbols/kernel/kernel-symbols.ts';
import type { BpfCode } from './bpf-code.ts';

export interface KernelRoots {
  proc: string;
  sys: string;
}

export interface KernelOptions {
  roots?: KernelRoots;
  /** Milliseconds, for tests. */
  now?: () => number;
  /** Without it, a BPF program is thought to reach up to the next symbol. */
  bpf?: BpfCode;
}

/** Reading all symbols costs some 0.1 s of CPU time: so often at most, and ever less often where it is of no use. */
const MIN_RELOAD_WAIT_MS = 10_000;
const MAX_RELOAD_WAIT_MS = 3_600_000;
/** Addresses without a symbol that are kept, to see whether reading the symbols again was of use. */
const MAX_MISSES = 16;
/** In so many intervals an address has to be missed. */
const TIMES_TO_MISS = 2;
/** One read of kallsyms gives a page at most; a slice is parsed in about a millisecond, cold in five. */
const SLICE_BYTES = 64 * 1024;
const PAGE_BYTES = 4096;
/** Code that the kernel makes and is not a BPF program, such as a trampoline, has this much room. */
const MAX_TRAMPOLINE = 4096;
const MAX_NOTE_BYTES = 64 * 1024;

const UNKNOWN: Mapping = { ...emptyMapping(), filename: '[kernel]' };
const UPPER_BITS = 0xfffn << 52n;

/** The address of a frame as people know it: of /proc/kallsyms or System.map where nothing is known of kernel code. */
export const fullAddress = (mapping: Mapping, address: number): bigint =>
  mapping === UNKNOWN ? UPPER_BITS | BigInt(address) : BigInt(address);

export class Kernel {
  readonly stats = { loads: 0, failedLoads: 0, misses: 0 };
  /** Changes when symbols were read again: names that were looked up before may be stale. */
  generation = 0;
  readonly #roots: KernelRoots;
  readonly #now: () => number;
  readonly #bpf: BpfCode | undefined;
  readonly #mappings = new Map<string, Mapping>();
  #symbols: KernelSymbols = parseKallsyms('');
  #modules: ModuleRange[] = [];
  #missed: bigint[] = [];
  /** Since the last call of {@link refresh}. */
  #hasMissed = false;
  /** How many calls found that an address was missed, since symbols were read. */
  #missedTimes = 0;
  #loadedAt = 0;
  #reloadWaitMs = MIN_RELOAD_WAIT_MS;

  /** Knows nothing until {@link open}. */
  constructor({ roots, now, bpf }: KernelOptions = {}) {
    this.#roots = roots ?? { proc: '/proc', sys: '/sys' };
    this.#now = now ?? (() => performance.now());
    this.#bpf = bpf;
  }

  /**
   * Reads the symbols, some 0.1 s of CPU time in slices of a few milliseconds. Never fails: without symbols every
   * address is unknown, and `unavailable` says why.
   */
  async open(): Promise<void> {
    this.#modules = this.#readModules();
    await this.#load();
  }

  /** Why there are no names, with the fix; '' if there are. */
  unavailable = '';

  get symbolCount(): number {
    return this.#symbols.count;
  }

  /** Looks up a kernel address; undefined if nothing is known of it. */
  lookup(address: bigint): KernelSymbol | undefined {
    const symbol = this.#find(address);
    if (symbol === undefined || symbol.name === '') this.stats.misses++;
    // of BPF code all is known that there is to know
    if (symbol === undefined && this.unavailable === '') {
      this.#hasMissed = true;
      if (this.#missed.length < MAX_MISSES) this.#missed.push(address);
    }
    return symbol;
  }

  /** See KernelSymbols. */
  rangeOf(name: string): { start: bigint; end: bigint } | undefined {
    return this.#symbols.rangeOf(name);
  }

  /**
   * An address as a frame: in the mapping of its image, with the address counted from there. Where nothing is
   * known of it, the mapping is `[kernel]` and the address less its upper 12 bits, which are set in all of the kernel's
   * and which a number could not hold ({@link fullAddress} has them again). `mayChange`:
   * other code may stand there at any time, as where BPF programs come and go, or a symbol may be read for it.
   */
  locate(address: bigint): { mapping: Mapping; address: number; name: string; mayChange: boolean } {
    const symbol = this.lookup(address);
    if (!symbol) {
      const low = Number(BigInt.asUintN(52, address));
      return { mapping: UNKNOWN, address: low, name: '', mayChange: this.unavailable === '' };
    }
    const { module, offset, name } = symbol;
    return { mapping: this.mapping(module), address: offset, name, mayChange: isPseudo(module) };
  }

  /** The image of a module, '' for the kernel itself, as a mapping of the profile; the same object each time. */
  mapping(module: string): Mapping {
    let mapping = this.#mappings.get(module);
    if (!mapping) {
      const gnuBuildId = this.#readBuildId(module);
      const image = this.#symbols.images.find(({ name, pseudo }) => name === module && !pseudo);
      mapping = {
        ...emptyMapping(),
        // Addresses of kernel frames count from the start of their image.
        memoryLimit: image ? BigInt(Math.max(0, image.limit - image.start)) : 0n,
        filename: module === '' ? 'vmlinux' : module,
        gnuBuildId,
        fileId: kernelFileId(gnuBuildId),
      };
      this.#mappings.set(module, mapping);
    }
    return mapping;
  }

  /**
   * To be called now and then, as between two reports: reads the symbols again if modules came or went, or if
   * addresses were met twice that no symbol covers, as of a trampoline made since; once only, they may well be those of
   * a BPF program that is gone. Where that brings no name it is tried less and less often. True if symbols were read.
   */
  async refresh(): Promise<boolean> {
    if (this.#hasMissed) this.#missedTimes++;
    this.#hasMissed = false;
    const age = this.#now() - this.#loadedAt;
    if (this.unavailable !== '' || age < MIN_RELOAD_WAIT_MS) return false;
    const modules = this.#readModules();
    const hasChanged = !areSame(modules, this.#modules);
    const missed = this.#missed;
    if (!hasChanged && (this.#missedTimes < TIMES_TO_MISS || age < this.#reloadWaitMs)) return false;
    this.#modules = modules;
    this.#missed = [];
    this.#missedTimes = 0;
    if (!(await this.#load())) return false;
    const helped = hasChanged || missed.some((address) => (this.#find(address)?.name ?? '') !== '');
    this.#reloadWaitMs = helped ? MIN_RELOAD_WAIT_MS : Math.min(this.#reloadWaitMs * 2, MAX_RELOAD_WAIT_MS);
    return true;
  }

  #find(address: bigint): KernelSymbol | undefined {
    const symbol = this.#symbols.lookup(address);
    if (symbol && !isPseudo(symbol.module)) return symbol;
    if (this.#bpf?.update() === undefined) return symbol;
    const code = this.#bpf.find(address);
    if (!code) {
      // a trampoline, or what was behind a program that is gone
      const isTrampoline = symbol && symbol.offset < MAX_TRAMPOLINE && !symbol.name.startsWith('bpf_prog_');
      return isTrampoline ? symbol : undefined;
    }
    return { name: code.name, module: 'bpf', offset: Number(address - code.start) };
  }

  async #load(): Promise<boolean> {
    const path = join(this.#roots.proc, 'kallsyms');
    this.#bpf?.reset();
    this.#bpf?.update();
    try {
      const reader = new KallsymsReader();
      await readInSlices(path, (slice) => reader.push(slice));
      this.#symbols = await inTurns(buildKernelSymbols(reader.finish(), this.#modules));
      this.unavailable = this.#symbols.hiddenReason;
    } catch (error) {
      this.stats.failedLoads++;
      if (this.generation === 0) {
        this.unavailable = `kernel symbols can't be read: ${(error as Error).message}; kernel frames stay addresses`;
      }
      return false;
    }
    this.stats.loads++;
    this.#loadedAt = this.#now();
    this.generation++;
    this.#mappings.clear();
    return true;
  }

  /** None where the kernel can't load any. */
  #readModules(): ModuleRange[] {
    try {
      return parseModules(readFileSync(join(this.#roots.proc, 'modules'), 'latin1'));
    } catch {
      return [];
    }
  }

  #readBuildId(module: string): string {
    // Module names come from kallsyms; one with a slash or dots must not lead elsewhere.
    if (!/^\w*$/.test(module)) return '';
    const path = module === '' ? 'kernel/notes' : `module/${module}/notes/.note.gnu.build-id`;
    try {
      return findGnuBuildId(readFileSync(join(this.#roots.sys, path)).subarray(0, MAX_NOTE_BYTES));
    } catch {
      return '';
    }
  }
}

/** Use counts change all the time; what counts is which module lies where. */
const areSame = (a: readonly ModuleRange[], b: readonly ModuleRange[]): boolean =>
  a.length === b.length && a.every(({ name, base }, i) => name === b[i]!.name && base === b[i]!.base);

/** Runs something that goes by steps, a turn of the event loop each. */
async function inTurns<T>(steps: Generator<void, T, void>): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await new Promise(setImmediate);
  }
}

/**
 * Reads a file of procfs, which gives a page a call. Blocking reads of a slice and then a turn of the event loop:
 * half the CPU time of one asynchronous read a page.
 */
async function readInSlices(path: string, onSlice: (slice: Uint8Array) => void): Promise<void> {
  const fd = openSync(path, 'r');
  try {
    const slice = Buffer.alloc(SLICE_BYTES);
    for (;;) {
      let used = 0;
      while (slice.length - used >= PAGE_BYTES) {
        const n = readSync(fd, slice, used, slice.length - used, null);
        if (n === 0) break;
        used += n;
      }
      if (used === 0) return;
      onSlice(slice.subarray(0, used));
      await new Promise(setImmediate);
    }
  } finally {
    closeSync(fd);
  }
}
