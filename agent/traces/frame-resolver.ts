/**
 * From the words of a trace to named frames. A frame is made once and shared by all traces that contain it; what
 * it says grows with time: a file that is not open yet has no address, a symbol table that is not read yet no
 * names. Both are asked for again at the next interval.
 */
import { LRUCache } from 'lru-cache';
import type { FileKey } from '../../common/base/brand.ts';
import { emptyMapping, type FrameType, type Line, type Mapping } from '../../common/profile/profile.ts';
import { FrameKind, Marker } from '../tracer/records.gen.ts';
import { toKey } from '../tracer/records.ts';
import type { Trace } from './trace-cache.ts';

/** An inlined or real function at a location, innermost first. */
export interface FrameLine extends Omit<Line, 'func'> {
  function: string;
  systemName: string;
  file: string;
}

export interface Frame {
  mapping: Mapping;
  /** ELF virtual address; 0 where there is none. */
  address: number;
  frameType: FrameType;
  lines: FrameLine[];
}

export interface NativeSource {
  /** Where an offset of the file lies; undefined while the file is not open (or never will be). */
  locate(key: FileKey, fileOffset: number): { mapping: Mapping; address: number } | undefined;
  /** A name for the file whose frames cannot be located, '' if not even that is known. */
  nameOf(key: FileKey): string;
  /** Function names by ELF virtual address; undefined where no symbol covers one. */
  resolve(key: FileKey, addresses: number[]): Promise<(string | undefined)[]>;
}

export interface KernelSource {
  locate(address: bigint): { mapping: Mapping; address: number; name: string };
}

interface FileFrame extends Frame {
  offset: number;
  located: boolean;
  named: boolean;
}

/** What a person reads where a stack was cut. */
export const MARKER_TEXT: Readonly<Record<number, string>> = {
  [Marker.DEPTH]: '[cut: deeper than the limit]',
  [Marker.NO_TABLE]: '[cut: no unwind information in this file]',
  [Marker.PENDING]: '[cut: unwind information not ready yet]',
  [Marker.NO_RULE]: '[cut: no unwind information for this code]',
  [Marker.ANON]: '[cut: code that no file backs]',
  [Marker.STACK_READ]: '[cut: stack memory not resident]',
  [Marker.UNMAPPED]: '[cut: return address in no code]',
  [Marker.REGISTER]: '[cut: needs a register that is not kept]',
  [Marker.NO_PROGRESS]: '[cut: stack does not advance]',
  [Marker.COMPAT]: '[cut: 32-bit process]',
  [Marker.VMA_RACE]: '[cut: memory map changed]',
};

const OPERAND = (1n << 56n) - 1n;
/** Frames are shared; past this many all are made anew, which costs one slow interval. */
const MAX_FRAMES = 32_768;
const MAX_TRACES = 4096;

const named = (name: string): FrameLine[] =>
  name === '' ? [] : [{ function: name, systemName: '', file: '', line: 0, column: 0 }];

const ANON: Mapping = { ...emptyMapping(), filename: '[anon]' };

export class FrameResolver {
  readonly #native: NativeSource;
  readonly #kernel: KernelSource;
  #kernelFrames = new Map<bigint, Frame>();
  #fileFrames = new Map<bigint, Map<bigint, FileFrame>>();
  #anonymousFrames = new Map<bigint, Frame>();
  readonly #markers = new Map<number, Frame>();
  #count = 0;
  #unnamed = new Set<FileFrame>();
  readonly #keyOf = new Map<FileFrame, FileKey>();
  readonly #traces = new LRUCache<Trace, Frame[]>({ max: MAX_TRACES });

  constructor(native: NativeSource, kernel: KernelSource) {
    this.#native = native;
    this.#kernel = kernel;
  }

  /** Leaf first; call {@link nameFrames} afterwards, which completes the frames in place. */
  framesOf(trace: Trace): Frame[] {
    const known = this.#traces.get(trace);
    if (known) return known;
    if (this.#count > MAX_FRAMES) this.#forgetAll();
    const frames: Frame[] = [];
    const { words, kernelFrames } = trace;
    for (let i = 0; i < kernelFrames; i++) {
      // a return address points behind its call
      frames.push(this.#kernelFrame(i === 0 ? words[i]! : words[i]! - 1n));
    }
    for (let i = kernelFrames; i < words.length; i++) {
      const kind = Number(words[i]! >> 56n);
      const operand = words[i]! & OPERAND;
      if (kind === FrameKind.FILE && i + 1 < words.length) frames.push(this.#fileFrame(words[++i]!, operand));
      else if (kind === FrameKind.ANON) frames.push(this.#anonymousFrame(operand));
      else if (kind === FrameKind.MARKER) frames.push(this.#marker(Number(operand)));
    }
    this.#traces.set(trace, frames);
    return frames;
  }

  /** Asks for what the frames made so far still lack. */
  async nameFrames(): Promise<void> {
    const wanted = new Map<FileKey, FileFrame[]>();
    for (const frame of this.#unnamed) {
      const key = this.#keyOf.get(frame)!;
      if (!frame.located && !this.#locate(frame, key)) continue;
      const frames = wanted.get(key);
      if (frames) frames.push(frame);
      else wanted.set(key, [frame]);
    }
    await Promise.all([...wanted].map(([key, frames]) => this.#nameFile(key, frames)));
  }

  /** Kernel symbols were read again, as after a module was loaded: names may have changed. */
  forgetKernel(): void {
    this.#kernelFrames = new Map();
    this.#traces.clear();
  }

  async #nameFile(key: FileKey, frames: FileFrame[]): Promise<void> {
    const names = await this.#native.resolve(
      key,
      frames.map((frame) => frame.address),
    );
    for (const [i, frame] of frames.entries()) {
      frame.lines = named(names[i] ?? '');
      frame.named = true;
      this.#unnamed.delete(frame);
      this.#keyOf.delete(frame);
    }
  }

  #locate(frame: FileFrame, key: FileKey): boolean {
    const place = this.#native.locate(key, frame.offset);
    if (!place) {
      frame.mapping = { ...emptyMapping(), filename: this.#native.nameOf(key) || '[file not open]' };
      return false;
    }
    frame.mapping = place.mapping;
    frame.address = place.address;
    frame.located = true;
    return true;
  }

  #kernelFrame(address: bigint): Frame {
    let frame = this.#kernelFrames.get(address);
    if (!frame) {
      const place = this.#kernel.locate(address);
      frame = { ...place, frameType: 'kernel', lines: named(place.name) };
      this.#kernelFrames.set(address, frame);
      this.#count++;
    }
    return frame;
  }

  #fileFrame(key: bigint, offset: bigint): FileFrame {
    let frames = this.#fileFrames.get(key);
    if (!frames) {
      frames = new Map();
      this.#fileFrames.set(key, frames);
    }
    let frame = frames.get(offset);
    if (!frame) {
      frame = {
        mapping: emptyMapping(),
        address: Number(offset),
        offset: Number(offset),
        frameType: 'native',
        lines: [],
        located: false,
        named: false,
      };
      frames.set(offset, frame);
      this.#unnamed.add(frame);
      this.#keyOf.set(frame, toKey(key));
      this.#count++;
    }
    return frame;
  }

  #anonymousFrame(address: bigint): Frame {
    let frame = this.#anonymousFrames.get(address);
    if (!frame) {
      frame = { mapping: ANON, address: Number(address), frameType: 'native', lines: [] };
      this.#anonymousFrames.set(address, frame);
      this.#count++;
    }
    return frame;
  }

  #marker(reason: number): Frame {
    let frame = this.#markers.get(reason);
    if (!frame) {
      const text = MARKER_TEXT[reason] ?? `[cut: reason ${reason}]`;
      frame = { mapping: emptyMapping(), address: 0, frameType: 'abort-marker', lines: named(text) };
      this.#markers.set(reason, frame);
    }
    return frame;
  }

  #forgetAll(): void {
    this.#kernelFrames = new Map();
    this.#fileFrames = new Map();
    this.#anonymousFrames = new Map();
    this.#unnamed = new Set();
    this.#keyOf.clear();
    this.#traces.clear();
    this.#count = 0;
  }
}
