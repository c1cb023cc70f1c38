/**
 * From the words of a trace to named frames. A frame is made once and shared by all traces that contain it; what
 * it says grows with time: a file that is not open yet has no address, a symbol table that is not read yet no
 * names. Both are asked for again at the next interval.
 */

import type { FileKey } from '../../common/base/brand.ts';
import { RangeMap } from '../../common/base/range-map.ts';
import { CUT_MARKERS } from '../../common/profile/model/cut-markers.ts';
import { emptyMapping, type Mapping } from '../../common/profile/model/profile.ts';
import type { NamedRange, SymbolFrame } from '../../common/symbols/source.ts';
import { OWN_VIEW } from '../processes/root-views.ts';
import { FrameKind, Marker } from '../records/records.gen.ts';
import { type ProcessIdentity, toKey } from '../records/records.ts';
import type { NamedRuntimeFrame, UnnamedFrame } from '../runtimes/runtime-frames.ts';
import type { Frame, FrameLine } from './frame.ts';
import { InterpretedFrames, NO_MAPPING, type PlaceSources } from './interpreted-frames.ts';
import { StringInterner } from './string-interner.ts';
import type { Trace } from './trace-store.ts';

/** The frames of a trace, leaf first. */
export interface StackFrames {
  /** For {@link FrameResolver.frameAt}; they are valid within one generation. */
  numbers: number[];
  /** The trace has these frames for as long; else only now. */
  isLasting: boolean;
}

export interface NativeSource {
  /** Mapping and ELF address of a file offset; undefined while the file is not open (or never will be). */
  locate(key: FileKey, fileOffset: number): { mapping: Mapping; address: number; isGo?: boolean } | undefined;
  /** A name for the file whose frames cannot be located, '' if not even that is known. */
  nameOf(key: FileKey): string;
  /** The functions at ELF virtual addresses as processes of a view have them (RootViews); none where nothing covers one. */
  resolve(key: FileKey, addresses: number[], view: number): Promise<NamedRange[]>;
}

export interface KernelPlace {
  mapping: Mapping;
  address: number;
  name: string;
  /** Other code may come to stand there at any time: the name holds only now. */
  mayChange: boolean;
}

export interface KernelSource {
  locate(address: bigint): KernelPlace;
}

interface FramesOfFile {
  key: FileKey;
  high: number;
  /** The view of the debug files that its processes see. */
  view: number;
  frames: Map<number, FileFrame>;
  /** What is known by ELF virtual address: nearly all new addresses are in a function, and on a line, that was met before. */
  names: RangeMap<KnownName>;
  /** Another file whose key has the same low half. */
  next: FramesOfFile | undefined;
}

interface KnownName {
  lines: FrameLine[];
  /** Where there are no lines: see {@link NamedRange}. */
  functionStart: number;
}

interface FileFrame extends Frame {
  /** False: its address is still the offset in the file. */
  located: boolean;
}

export interface RuntimeSource {
  /** Does the file hold the runtime whose frames are of that kind? */
  runs(key: FileKey, kind: number): boolean;
  /** Names an interpreted frame. Never throws. */
  name(frame: UnnamedFrame): NamedRuntimeFrame;
  /** Names many, with fewer reads of their processes. Neither it nor `take` throws. */
  nameAll<T extends UnnamedFrame>(
    frames: readonly T[],
    take: (frame: T, named: NamedRuntimeFrame) => void,
  ): Generator<void, void>;
}

/** With the place where it stands in its trace. */
interface FrameOfTrace extends UnnamedFrame {
  trace: Trace;
  /** Index of its first half. */
  at: number;
}

/** Frames in memory that no file backs. */
export interface AnonymousSource {
  /** Frames made since {@link forgetFrames}. */
  readonly count: number;
  /** The same object for the same address in the same execution of a process. */
  frameOf(process: ProcessIdentity, address: number): Frame;
  /** Completes in place what frames lack. */
  symbolizeFrames(): Promise<void>;
  forgetFrames(): void;
}

/** Texts of markers, for people. */
export const MARKER_TEXT: Readonly<Record<number, string>> = {
  [Marker.DEPTH]: CUT_MARKERS.depth,
  [Marker.NO_TABLE]: CUT_MARKERS.noTable,
  [Marker.PENDING]: CUT_MARKERS.pending,
  [Marker.NO_RULE]: CUT_MARKERS.noRule,
  [Marker.ANON]: CUT_MARKERS.anonymous,
  [Marker.STACK_READ]: CUT_MARKERS.stackRead,
  [Marker.UNMAPPED]: CUT_MARKERS.unmapped,
  [Marker.REGISTER]: CUT_MARKERS.register,
  [Marker.NO_PROGRESS]: CUT_MARKERS.noProgress,
  [Marker.COMPAT]: CUT_MARKERS.compat,
  [Marker.VMA_RACE]: CUT_MARKERS.vmaRace,
};

/** Frames are shared; past this many all are made anew, which costs one slow interval. */
const DEFAULT_MAX_FRAMES = 32_768;

const named = (name: string): FrameLine[] =>
  name === '' ? [] : [{ function: name, systemName: '', file: '', line: 0, column: 0 }];

/** Frames of runtimes, which have two words: the kinds behind those of all. */
const isRuntime = (kind: number): boolean => kind > FrameKind.MARKER;

const textOf = ({ operand, low, high }: UnnamedFrame['words']): string => `${operand} ${low} ${high}`;

/** V8 keeps a number as an object where it, or what it comes of, doesn't fit into 32 bits; `| 0` makes it small again. */
const small = (number: number): number => ((number | 0) === number ? number | 0 : number);

const NO_LINES: FrameLine[] = [];
/** Only a frame without one may be another one soon: those with one need not be looked up twice. */
const hasLine = ({ line }: FrameLine): boolean => line > 0;

export class FrameResolver {
  readonly #native: NativeSource;
  readonly #kernel: KernelSource;
  readonly #runtimes: RuntimeSource;
  readonly #anonymous: AnonymousSource;
  readonly #places: PlaceSources;
  readonly #maxFrames: number;
  #kernelLeaves = new Map<number, Frame>();
  #kernelCallers = new Map<number, Frame>();
  /** Kernel frames of code that comes and goes, by address and name. */
  readonly #changingKernel = new Map<string, Frame>();
  /** By the low half of the file's key. */
  #files = new Map<number, FramesOfFile>();
  readonly #interpreted: InterpretedFrames;
  readonly #markers = new Map<number, Frame>();
  #count = 0;
  readonly #unnamed = new Map<FileFrame, FramesOfFile>();
  readonly #strings = new StringInterner();
  /** By number. */
  #frames: Frame[] = [];
  /** Goes up where something was forgotten. */
  #generation = 1;
  #isBusy = false;
  #forgetsAfterwards = false;

  constructor(
    native: NativeSource,
    kernel: KernelSource,
    runtimes: RuntimeSource,
    anonymous: AnonymousSource,
    places: PlaceSources = {},
    maxFrames = DEFAULT_MAX_FRAMES,
  ) {
    this.#native = native;
    this.#kernel = kernel;
    this.#runtimes = runtimes;
    this.#anonymous = anonymous;
    this.#places = places;
    this.#maxFrames = maxFrames;
    this.#interpreted = new InterpretedFrames(places);
  }

  /** The numbers of frames are valid within one generation. */
  get generation(): number {
    return this.#generation;
  }

  /** Frames that have a number: all numbers are below it. */
  get frameCount(): number {
    return this.#frames.length;
  }

  frameAt(number: number): Frame {
    return this.#frames[number]!;
  }

  /** Until {@link endStacks} no frame is forgotten: a forgotten one would not be named any more. */
  beginStacks(): void {
    this.#isBusy = true;
  }

  endStacks(): void {
    this.#isBusy = false;
    if (this.#forgetsAfterwards) this.forget();
  }

  /**
   * Call {@link symbolizeFrames} afterwards, which completes the frames in place. One step for each frame of a runtime: its name
   * may have to be read out of the process.
   */
  *framesOf(trace: Trace, view = OWN_VIEW): Generator<void, StackFrames> {
    if (this.#count + this.#interpreted.size + this.#anonymous.count > this.#maxFrames) this.forget();
    const generation = this.#generation;
    const numbers: number[] = [];
    const words = new Words(trace.u32Pairs);
    let isLasting = true;
    for (let i = 0; i < trace.kernelFrames; i++) {
      const frame = this.#kernelFrame(words, i);
      isLasting &&= this.#isKept(frame, words, i);
      numbers.push(this.#numberOf(frame));
    }
    for (let i = trace.kernelFrames; i < words.length; i++) {
      const frame = this.#userFrame(trace, view, words, i);
      if (!frame) continue;
      numbers.push(this.#numberOf(frame));
      const kind = words.kind(i);
      if (kind === FrameKind.FILE) i++;
      else if (isRuntime(kind)) {
        isLasting &&= frame.lines.every(hasLine) || !this.#interpreted.isForNow(trace, trace.u32Pairs, i * 2);
        i++;
        yield;
      }
    }
    return { numbers, isLasting: isLasting && generation === this.#generation };
  }

  /** Names the runtimes' frames of these traces, all at once; {@link framesOf} finds them then. */
  *nameAhead(traces: readonly Trace[]): Generator<void, void> {
    const frames = new Map<string, FrameOfTrace>();
    for (const trace of traces)
      for (const frame of this.#unnamedOf(trace))
        frames.set(`${frame.pid} ${frame.kind} ${textOf(frame.words)}`, frame);
    yield* this.#runtimes.nameAll([...frames.values()], ({ trace, at }, named) => {
      this.#interpreted.add(trace, trace.u32Pairs, at, named);
    });
  }

  *#unnamedOf(trace: Trace): Generator<FrameOfTrace, void> {
    const words = new Words(trace.u32Pairs);
    for (let i = trace.kernelFrames; i + 1 < words.length; i++) {
      const kind = words.kind(i);
      if (isRuntime(kind) && !this.#interpreted.find(trace, trace.u32Pairs, i * 2))
        yield { trace, at: i * 2, ...this.#unnamedAt(trace, words, i) };
      if (kind === FrameKind.FILE || isRuntime(kind)) i++;
    }
  }

  /** Asks for what the frames made so far still lack. */
  async symbolizeFrames(): Promise<void> {
    const wanted = new Map<FramesOfFile, FileFrame[]>();
    for (const [frame, file] of this.#unnamed) {
      if (!frame.located && !this.#locate(frame, file.key)) continue;
      const known = file.names.get(frame.address);
      const frames = wanted.get(file);
      if (known) this.#name(frame, known);
      else if (frames) frames.push(frame);
      else wanted.set(file, [frame]);
    }
    const files = [...wanted].map(([file, frames]) => this.#nameFile(file, frames));
    const places = Object.values(this.#places).map((source) => source.symbolizeFrames());
    await Promise.all([this.#anonymous.symbolizeFrames(), ...places, ...files]);
  }

  /** All frames are made anew; at once, or after the stacks that are being made. */
  forget(): void {
    this.#forgetsAfterwards = this.#isBusy;
    if (this.#isBusy) return;
    this.#generation++;
    this.#kernelLeaves = new Map();
    this.#kernelCallers = new Map();
    this.#changingKernel.clear();
    this.#files = new Map();
    this.#anonymous.forgetFrames();
    this.#interpreted.forget();
    this.#markers.clear();
    this.#unnamed.clear();
    this.#strings.forget();
    this.#frames = [];
    this.#count = 0;
  }

  /** Kernel symbols were read again, as after a module was loaded: names may have changed. */
  forgetKernel(): void {
    this.#generation++;
    this.#kernelLeaves = new Map();
    this.#kernelCallers = new Map();
  }

  /** More is known of a file now: its frames are named again, and keep what they have until then. */
  renameFile(key: FileKey): void {
    for (const head of this.#files.values())
      for (let file: FramesOfFile | undefined = head; file; file = file.next) {
        if (file.key !== key) continue;
        file.names = new RangeMap();
        for (const frame of file.frames.values()) this.#unnamed.set(frame, file);
      }
  }

  async #nameFile(file: FramesOfFile, frames: FileFrame[]): Promise<void> {
    const { key, view, names: known } = file;
    const addresses = frames.map((frame) => frame.address);
    const names = await this.#native.resolve(key, addresses, view);
    const isRenamed = file.names !== known;
    for (let i = 0; i < frames.length; i++) {
      const name = names[i]!;
      let found = known.get(addresses[i]!);
      if (!found) {
        found = { lines: name.frames.map(this.#toLine), functionStart: name.functionStart ?? 0 };
        if (name.end > name.start) known.set(addresses[i]!, name, found);
      }
      this.#name(frames[i]!, found);
      if (isRenamed) this.#unnamed.set(frames[i]!, file);
    }
  }

  #name(frame: FileFrame, { lines, functionStart }: KnownName): void {
    // without either it was asked for again in vain, as when the file is gone: it keeps the names it had
    if (lines.length > 0 || (functionStart > 0 && frame.lines.length === 0)) {
      frame.lines = lines;
      frame.functionStart = functionStart;
      frame.isChanged = true;
    }
    this.#unnamed.delete(frame);
  }

  /** A mangled name only where it differs. */
  readonly #toLine = ({ function: name, systemName, file, line, column }: SymbolFrame): FrameLine => ({
    function: this.#strings.intern(name),
    systemName: systemName === name ? '' : this.#strings.intern(systemName),
    file: this.#strings.intern(file),
    line,
    column,
  });

  #locate(frame: FileFrame, key: FileKey): boolean {
    const place = this.#native.locate(key, frame.address);
    if (!place) {
      const filename = this.#native.nameOf(key) || '[file not open]';
      if (frame.mapping.filename === filename) return false;
      frame.mapping = { ...emptyMapping(), filename };
      frame.isChanged = true;
      return false;
    }
    frame.mapping = place.mapping;
    frame.address = place.address;
    if (place.isGo) frame.frameType = 'go';
    frame.located = true;
    frame.isChanged = true;
    return true;
  }

  /** The first frame of a trace is where it was interrupted, the others return addresses. */
  #kernelFrame(words: Words, i: number): Frame {
    const frames = i === 0 ? this.#kernelLeaves : this.#kernelCallers;
    const known = words.operand(i);
    let frame = frames.get(known);
    if (!frame) {
      // a return address points behind its call
      const place = this.#kernel.locate(i === 0 ? words.at(i) : words.at(i) - 1n);
      if (place.mayChange) return this.#changingFrame(place);
      frame = this.#newKernelFrame(place);
      frames.set(known, frame);
    }
    return frame;
  }

  #changingFrame(place: KernelPlace): Frame {
    const key = `${place.address} ${place.name}`;
    const frame = this.#changingKernel.get(key) ?? this.#newKernelFrame(place);
    this.#changingKernel.set(key, frame);
    return frame;
  }

  #newKernelFrame({ mapping, address, name }: KernelPlace): Frame {
    this.#count++;
    return {
      mapping,
      address,
      frameType: 'kernel',
      lines: named(name),
      number: undefined,
      isChanged: true,
    };
  }

  /** True where it is the frame of this kernel address until the symbols are read again. */
  #isKept(frame: Frame, words: Words, i: number): boolean {
    return (i === 0 ? this.#kernelLeaves : this.#kernelCallers).get(words.operand(i)) === frame;
  }

  #numberOf(frame: Frame): number {
    frame.number ??= this.#frames.push(frame) - 1;
    return frame.number;
  }

  /** Undefined where the words are no frame. */
  #userFrame(trace: Trace, view: number, words: Words, i: number): Frame | undefined {
    const kind = words.kind(i);
    if (kind === FrameKind.ANON) return this.#anonymous.frameOf(trace, words.operand(i));
    if (kind === FrameKind.MARKER) return this.#marker(words.operand(i));
    if (i + 1 >= words.length) return undefined;
    if (kind === FrameKind.FILE) return this.#fileFrame(view, words, i);
    return isRuntime(kind) ? this.#runtimeFrame(trace, words, i) : undefined;
  }

  /** Two words: kind and file offset, then the file's key. */
  #fileFrame(view: number, words: Words, i: number): FileFrame {
    const file = this.#file(view, words, i + 1);
    const offset = small(words.operand(i));
    let frame = file.frames.get(offset);
    if (!frame) {
      frame = {
        // before the fields of other frames: V8 then knows these objects apart, and keeps their addresses as small numbers
        located: false,
        mapping: NO_MAPPING,
        address: offset,
        frameType: 'native',
        lines: NO_LINES,
        number: undefined,
        isChanged: true,
      };
      file.frames.set(offset, frame);
      this.#unnamed.set(frame, file);
      this.#count++;
    }
    return frame;
  }

  #file(view: number, words: Words, i: number): FramesOfFile {
    const low = words.low(i);
    const high = words.high(i);
    let file = this.#files.get(low);
    while (file && !(file.high === high && file.view === view)) file = file.next;
    if (!file) {
      const key = toKey(words.at(i));
      file = { key, high, view, frames: new Map(), names: new RangeMap(), next: this.#files.get(low) };
      this.#files.set(low, file);
    }
    return file;
  }

  /** Two words: kind and operand, then one of the runtime's own. */
  #runtimeFrame(trace: Trace, words: Words, i: number): Frame {
    const { u32Pairs } = trace;
    const known = this.#interpreted.find(trace, u32Pairs, i * 2);
    if (known) return known;
    const named = this.#runtimes.name(this.#unnamedAt(trace, words, i));
    return this.#interpreted.add(trace, u32Pairs, i * 2, named);
  }

  #unnamedAt({ pid, runtimeFile }: Trace, words: Words, i: number): UnnamedFrame {
    const kind = words.kind(i);
    const key = this.#runtimeFile(words, kind, i + 2) ?? this.#runtimeOfCut(runtimeFile, kind);
    return {
      pid,
      key,
      kind,
      words: { operand: words.operand(i), low: words.low(i + 1), high: words.high(i + 1) },
    };
  }

  /** The next native frame whose file holds the runtime. */
  #runtimeFile(words: Words, kind: number, from: number): FileKey | undefined {
    for (let i = from; i + 1 < words.length; i++) {
      const next = words.kind(i);
      if (next === FrameKind.FILE) {
        const { key } = this.#file(OWN_VIEW, words, i + 1);
        if (this.#runtimes.runs(key, kind)) return key;
      }
      if (next === FrameKind.FILE || isRuntime(next)) i++;
    }
    return undefined;
  }

  /** Runtime of a stack that was cut before it came to a frame of the runtime. */
  #runtimeOfCut(runtimeFile: bigint, kind: number): FileKey | undefined {
    const key = toKey(runtimeFile);
    return runtimeFile !== 0n && this.#runtimes.runs(key, kind) ? key : undefined;
  }

  #marker(reason: number): Frame {
    let frame = this.#markers.get(reason);
    if (!frame) {
      const text = MARKER_TEXT[reason] ?? `[cut: reason ${reason}]`;
      frame = {
        mapping: NO_MAPPING,
        address: 0,
        frameType: 'abort-marker',
        lines: named(text),
        isChanged: true,
      };
      this.#markers.set(reason, frame);
    }
    return frame;
  }
}

/** The words of a trace as u32 pairs, the lower half first: a BigInt for each would cost more than all else here. */
class Words {
  readonly #u32Pairs: Uint32Array;

  constructor(u32Pairs: Uint32Array) {
    this.#u32Pairs = u32Pairs;
  }

  get length(): number {
    return this.#u32Pairs.length / 2;
  }

  at(i: number): bigint {
    return (BigInt(this.high(i)) << 32n) | BigInt(this.low(i));
  }

  low(i: number): number {
    return this.#u32Pairs[i * 2]!;
  }

  high(i: number): number {
    return this.#u32Pairs[i * 2 + 1]!;
  }

  /** Bits 56 to 63: enum ef_frame_kind of a user frame. */
  kind(i: number): number {
    return this.high(i) >>> 24;
  }

  /** Bits 0 to 52, which tell user addresses, kernel addresses and file offsets apart. */
  operand(i: number): number {
    return (this.high(i) & 0x1f_ffff) * 2 ** 32 + this.low(i);
  }
}
