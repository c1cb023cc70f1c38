/** From an interval of counted samples to a profile: frames named, clock converted, tables interned. */
import { hostname } from 'node:os';
import type { Pid } from '../../common/base/brand.ts';
import {
  emptyProfile,
  type Func,
  type Mapping,
  type Process,
  type Profile,
} from '../../common/profile/profile.ts';
import type { Frame, FrameLine, FrameResolver } from './frame-resolver.ts';
import type { Interval, SampleGroup } from './trace-handler.ts';

export interface ProcessSource {
  get(pid: Pid, execId: number, startBoottimeNs: bigint): Process;
}

export interface ProfileMakerOptions {
  periodNs: number;
  frames: FrameResolver;
  processes: ProcessSource;
  /** What to add to CLOCK_MONOTONIC for Unix time; read anew each time, so that it follows clock changes. */
  unixOffsetNs(): bigint;
}

const SLAB_WORDS = 16 << 10;
const SLICE_MS = 10;
/** How many groups are taken between two looks at the clock. */
const ITEMS_PER_LOOK = 16;
const HOST = { 'host.name': hostname(), 'host.arch': process.arch === 'x64' ? 'amd64' : process.arch };

export class ProfileMaker {
  readonly #options: ProfileMakerOptions;

  constructor(options: ProfileMakerOptions) {
    this.#options = options;
  }

  /** Names what it can; never throws for what it can't. */
  async make(interval: Interval): Promise<Profile> {
    const { frames, processes, periodNs } = this.#options;
    const stacks: Frame[][] = [];
    await inSlices(interval.groups, (group) => stacks.push(frames.framesOf(group.trace)));
    await frames.nameFrames();
    const offsetNs = this.#options.unixOffsetNs();
    const tables = new Tables();
    await inSlices(interval.groups, (group, i) => {
      const process = processes.get(group.pid, group.execId, group.startBoottimeNs);
      tables.addGroup(group, stacks[i]!, process, offsetNs);
    });
    const { profile } = tables;
    profile.host = HOST;
    profile.period = BigInt(periodNs);
    if (interval.samples > 0) {
      profile.timeUnixNano = BigInt(interval.firstKtimeNs) + offsetNs;
      // one more than the last sample, so that every timestamp lies inside
      profile.durationNano = BigInt(interval.lastKtimeNs - interval.firstKtimeNs) + 1n;
    }
    return profile;
  }
}

/** Between two slices the event loop goes on: a machine with many CPUs has tens of thousands of groups. */
async function inSlices<T>(items: readonly T[], take: (item: T, i: number) => void): Promise<void> {
  let end = performance.now() + SLICE_MS;
  for (const [i, item] of items.entries()) {
    if (i % ITEMS_PER_LOOK === 0 && performance.now() >= end) {
      await new Promise(setImmediate);
      end = performance.now() + SLICE_MS;
    }
    take(item, i);
  }
}

/** Interns by identity first (frames and processes are shared objects) and by content where that may repeat. */
class Tables {
  readonly profile: Profile = emptyProfile();
  readonly #mappings = new Map<Mapping, number>();
  readonly #mappingsByContent = new Map<string, number>();
  readonly #functions = new Map<string, number>();
  readonly #locations = new Map<Frame, number>();
  /** Mapping → address → location: copies of one file have frames of their own, but one location. */
  readonly #locationsByPlace = new Map<number, Map<number, number>>();
  readonly #locationsByContent = new Map<string, number>();
  readonly #stacksByFrames = new Map<Frame[], number>();
  /** Hash of the locations → stacks that have it. */
  readonly #stacksByHash = new Map<number, number[]>();
  readonly #processes = new Map<Process, number>();
  #slab = new Uint32Array(SLAB_WORDS);
  #slabUsed = 0;

  addGroup(group: SampleGroup, frames: Frame[], process: Process, offsetNs: bigint): void {
    this.profile.samples.push({
      stack: this.#stack(frames),
      process: this.#process(process),
      tid: group.tid,
      threadName: group.threadName,
      cpu: group.cpu,
      count: group.ktimesNs.length,
      timestamps: group.ktimesNs.map((ktime) => BigInt(ktime) + offsetNs),
    });
  }

  #stack(frames: Frame[]): number {
    const known = this.#stacksByFrames.get(frames);
    if (known !== undefined) return known;
    const locations = this.#room(frames.length);
    for (let i = 0; i < frames.length; i++) locations[i] = this.#location(frames[i]!);
    const index = this.#internStack(locations);
    this.#stacksByFrames.set(frames, index);
    return index;
  }

  /** A part of a large array: thousands of small ones cost an allocation outside the heap each. */
  #room(length: number): Uint32Array {
    if (this.#slabUsed + length > this.#slab.length) {
      this.#slab = new Uint32Array(Math.max(SLAB_WORDS, length));
      this.#slabUsed = 0;
    }
    this.#slabUsed += length;
    return this.#slab.subarray(this.#slabUsed - length, this.#slabUsed);
  }

  #internStack(locations: Uint32Array): number {
    if (locations.length === 0) return 0;
    const { stacks } = this.profile;
    let hash = locations.length;
    for (let i = 0; i < locations.length; i++) hash = (Math.imul(hash, 31) + locations[i]!) | 0;
    const candidates = this.#stacksByHash.get(hash);
    const known = candidates?.find((index) => areEqual(stacks[index]!, locations));
    if (known !== undefined) return known;
    const index = stacks.push(locations) - 1;
    if (candidates) candidates.push(index);
    else this.#stacksByHash.set(hash, [index]);
    return index;
  }

  #location(frame: Frame): number {
    const known = this.#locations.get(frame);
    if (known !== undefined) return known;
    const mapping = this.#mapping(frame.mapping);
    let places = this.#locationsByPlace.get(mapping);
    if (!places) {
      places = new Map();
      this.#locationsByPlace.set(mapping, places);
    }
    // interpreted frames and markers have no place, only what they say; JIT code has another one in each process
    const content = hasPlace(frame) ? undefined : contentOf(frame, mapping);
    let index = content === undefined ? places.get(frame.address) : this.#locationsByContent.get(content);
    if (index === undefined) {
      index = this.#addLocation(frame, mapping);
      if (content === undefined) places.set(frame.address, index);
      else this.#locationsByContent.set(content, index);
    }
    this.#locations.set(frame, index);
    return index;
  }

  #addLocation(frame: Frame, mapping: number): number {
    const { frameType, lines, generated } = frame;
    const location = {
      mapping,
      address: BigInt(frame.address),
      frameType,
      lines: lines.map((line) => ({ func: this.#function(line), line: line.line, column: line.column })),
      ...(generated ? { generated } : {}),
    };
    return this.profile.locations.push(location) - 1;
  }

  #mapping(mapping: Mapping): number {
    const known = this.#mappings.get(mapping);
    if (known !== undefined) return known;
    const { filename, fileId, gnuBuildId, memoryStart, memoryLimit, fileOffset } = mapping;
    const content = `${filename}\0${fileId}\0${gnuBuildId}\0${memoryStart}/${memoryLimit}/${fileOffset}`;
    const isNone = filename === '' && fileId === '';
    const index = isNone ? 0 : intern(this.#mappingsByContent, content, this.profile.mappings, () => mapping);
    this.#mappings.set(mapping, index);
    return index;
  }

  #function(line: FrameLine): number {
    const startLine = line.startLine ?? 0;
    const content = `${line.function}\0${line.systemName}\0${line.file}\0${startLine}`;
    return intern(
      this.#functions,
      content,
      this.profile.functions,
      (): Func => ({
        name: line.function,
        systemName: line.systemName,
        filename: line.file,
        startLine,
      }),
    );
  }

  #process(process: Process): number {
    const known = this.#processes.get(process);
    if (known !== undefined) return known;
    const index = this.profile.processes.push(process) - 1;
    this.#processes.set(process, index);
    return index;
  }
}

/** Does its address mean the same wherever it is met? It does in files, and says nothing more where it has no name. */
const hasPlace = ({ mapping, lines }: Frame): boolean =>
  mapping.fileId !== '' || (mapping.filename !== '' && lines.length === 0);

const contentOf = ({ frameType, address, lines, generated = '' }: Frame, mapping: number): string =>
  `${mapping}\0${frameType}\0${address}\0${generated}\0${lines.map((l) => `${l.function}\0${l.file}\0${l.line}\0${l.column}\0${l.startLine}`).join('\0')}`;

const areEqual = (a: Uint32Array, b: Uint32Array): boolean =>
  a.length === b.length && a.every((value, i) => value === b[i]);

function intern<T>(indices: Map<string, number>, key: string, table: T[], make: () => T): number {
  let index = indices.get(key);
  if (index === undefined) {
    index = table.push(make()) - 1;
    indices.set(key, index);
  }
  return index;
}
