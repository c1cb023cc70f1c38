/**
 * The Firefox Profiler's processed format, version 48, which every later version of that program still reads:
 * https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md
 * Each thread has tables of its own.
 */

import { FRAME_TYPES, KNOWN_FRAME_TYPES } from '../model/frame-types.ts';
import { type Json, toBytes } from '../model/json.ts';
import type { FrameType, Profile } from '../model/profile.ts';
import { cpuDeltas, periodMsOf, pointsOf, weightsOf } from './firefox-points.ts';
import type { FrameList, NamedFrame } from './frame-list.ts';
import { splitThreads, type ThreadGroup } from './thread-groups.ts';

/** Colours are the program's own names. A reader knows the type of a frame by its category. */
const CATEGORIES: readonly { type: FrameType; name: string; color: string }[] = [
  { type: '', name: 'Other', color: 'grey' },
  ...KNOWN_FRAME_TYPES.map((type) => ({
    type,
    name: FRAME_TYPES[type].category,
    color: FRAME_TYPES[type].colour,
  })),
];

const categoryOf = (type: FrameType): number => CATEGORIES.findIndex((category) => category.type === type);

/** Undefined for categories of other programs. */
export const frameTypeOf = (category: string): FrameType | undefined =>
  CATEGORIES.find(({ name }) => name === category)?.type;

const VERSION = 48;
const RESOURCE_LIBRARY = 1;

export function writeFirefox(profile: Profile): Uint8Array {
  const startMs = Number(profile.timeUnixNano) / 1e6;
  const { frames, threads, header } = splitThreads(profile, true);
  return toBytes({
    meta: {
      ...{ version: 27, preprocessedProfileVersion: VERSION, processType: 0, product: 'everyframe' },
      ...{ interval: periodMsOf(profile), startTime: startMs, stackwalk: 1, debug: false },
      ...{ oscpu: `Linux ${profile.host['host.arch'] ?? ''}`.trim() },
      ...{ symbolicated: true, markerSchema: [], importedFrom: 'everyframe', usesOnlyOneStackType: true },
      // the busiest
      ...(threads.length > 0 && { initialSelectedThreads: [0] }),
      categories: CATEGORIES.map(({ name, color }) => ({ name, color, subcategories: ['Other'] })),
      extensions: { length: 0, baseURL: [], id: [], name: [] },
      sampleUnits: { time: 'ms', eventDelay: 'ms', threadCPUDelta: 'ns' },
      sourceCodeIsNotOnSearchfox: true,
      everyframe: header,
    },
    libs: profile.mappings.slice(1).map(({ filename, gnuBuildId }) => {
      const name = baseName(filename);
      const debug = { debugName: name, debugPath: filename, breakpadId: '' };
      return { arch: '', name, path: filename, ...debug, codeId: gnuBuildId || null };
    }),
    pages: [],
    counters: [],
    profilerOverhead: [],
    threads: threads.map((group) => new ThreadWriter(profile, frames, group).write()),
  });
}

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

class ThreadWriter {
  readonly #profile: Profile;
  readonly #frames: FrameList;
  readonly #group: ThreadGroup;
  readonly #strings = new Map<string, number>();
  readonly #func = {
    name: [] as number[],
    fileName: [] as (number | null)[],
    resource: [] as number[],
    isJS: [] as boolean[],
  };
  readonly #funcs = new Map<string, number>();
  readonly #frame = {
    func: [] as number[],
    line: [] as (number | null)[],
    column: [] as (number | null)[],
    address: [] as number[],
    inlineDepth: [] as number[],
    category: [] as number[],
  };
  /** Of libraries only: by index into the profile's mappings. */
  readonly #resources = new Map<number, number>();
  readonly #frameIndices = new Map<number, number>();
  readonly #stack = { frame: [] as number[], prefix: [] as (number | null)[] };
  readonly #nodes = new Map<string, number>();
  readonly #stacks = new Map<number, number | null>();

  constructor(profile: Profile, frames: FrameList, group: ThreadGroup) {
    this.#profile = profile;
    this.#frames = frames;
    this.#group = group;
  }

  write(): Json {
    const { process, pid, tid, thread, samples, mark } = this.#group;
    const { rows, isTimed } = pointsOf(this.#profile, samples);
    const threadCPUDelta = cpuDeltas(this.#profile, rows);
    const { weightType, scale } = weightsOf(this.#profile);
    const stack = rows.map(({ sample }) => this.#stackOf(sample.stack));
    return {
      ...{ processType: 'default', processName: process, name: thread || process, pid: String(pid), tid },
      ...{ isMainThread: pid === tid, registerTime: 0, unregisterTime: null, pausedRanges: [] },
      ...{ processStartupTime: 0, processShutdownTime: null, showMarkersInTimeline: false },
      samples: {
        length: rows.length,
        stack,
        time: rows.map(({ timeMs }) => timeMs),
        weight: rows.map(({ value }) => value * scale),
        weightType,
        ...(threadCPUDelta && { threadCPUDelta }),
      },
      markers: { length: 0, data: [], name: [], startTime: [], endTime: [], phase: [], category: [] },
      ...this.#finishTables(),
      everyframe: { ...mark, ...(!isTimed && { isTimed }) },
    };
  }

  #finishTables(): Json {
    const [func, frame, nodes] = [this.#func, this.#frame, this.#stack];
    const fill = (table: { length: number }, value: unknown) => new Array(table.length).fill(value);
    const libs = [...this.#resources.keys()];
    const names = libs.map((mapping) => this.#string(baseName(this.#profile.mappings[mapping]!.filename)));
    return {
      stackTable: {
        ...{ length: nodes.frame.length, frame: nodes.frame, prefix: nodes.prefix },
        category: nodes.frame.map((index) => frame.category[index]!),
        subcategory: fill(nodes.frame, 0),
      },
      frameTable: {
        ...{ length: frame.func.length, ...frame, subcategory: fill(frame.func, 0) },
        ...{ nativeSymbol: fill(frame.func, null), innerWindowID: fill(frame.func, null) },
        implementation: fill(frame.func, null),
      },
      funcTable: {
        ...{ length: func.name.length, ...func, relevantForJS: fill(func.name, false) },
        ...{ lineNumber: fill(func.name, null), columnNumber: fill(func.name, null) },
      },
      resourceTable: {
        ...{ length: libs.length, lib: libs.map((mapping) => mapping - 1), name: names },
        ...{ host: fill(libs, null), type: fill(libs, RESOURCE_LIBRARY) },
      },
      nativeSymbols: { length: 0, libIndex: [], address: [], name: [], functionSize: [] },
      stringArray: [...this.#strings.keys()],
    };
  }

  #stackOf(stack: number): number | null {
    let node = this.#stacks.get(stack);
    if (node !== undefined) return node;
    node = null;
    for (const frame of this.#frames.ofStack(stack)) node = this.#child(node, this.#frameOf(frame));
    this.#stacks.set(stack, node);
    return node;
  }

  #child(prefix: number | null, frame: number): number {
    const key = `${prefix}/${frame}`;
    let node = this.#nodes.get(key);
    if (node === undefined) {
      node = this.#stack.frame.push(frame) - 1;
      this.#stack.prefix.push(prefix);
      this.#nodes.set(key, node);
    }
    return node;
  }

  #frameOf(index: number): number {
    let own = this.#frameIndices.get(index);
    if (own === undefined) {
      const named = this.#frames.frames[index]!;
      const { line, column, address, mapping, inlineDepth, frameType } = named;
      const frame = this.#frame;
      own = frame.func.push(this.#funcOf(named)) - 1;
      frame.line.push(line || null);
      frame.column.push(column || null);
      // relative to the library, and a number of JSON
      frame.address.push(mapping > 0 && address <= Number.MAX_SAFE_INTEGER ? Number(address) : -1);
      frame.inlineDepth.push(inlineDepth);
      frame.category.push(categoryOf(frameType));
      this.#frameIndices.set(index, own);
    }
    return own;
  }

  #funcOf({ name, file, mapping, frameType }: NamedFrame): number {
    const isJS = frameType !== '' && FRAME_TYPES[frameType].isJS === true;
    const key = `${mapping}/${isJS}/${file}\0${name}`;
    let index = this.#funcs.get(key);
    if (index === undefined) {
      index = this.#func.name.push(this.#string(name)) - 1;
      this.#func.fileName.push(file === '' ? null : this.#string(file));
      this.#func.resource.push(mapping === 0 ? -1 : this.#resourceOf(mapping));
      this.#func.isJS.push(isJS);
      this.#funcs.set(key, index);
    }
    return index;
  }

  #resourceOf(mapping: number): number {
    const index = this.#resources.get(mapping) ?? this.#resources.size;
    this.#resources.set(mapping, index);
    return index;
  }

  #string(value: string): number {
    const index = this.#strings.get(value) ?? this.#strings.size;
    this.#strings.set(value, index);
    return index;
  }
}
