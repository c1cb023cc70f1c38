/**
 * The Firefox Profiler's processed format, version 48, which every later version of that program still reads:
 * https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md
 * Each thread has tables of its own. Read are also newer files, whose threads share them.
 */
import { FrameList } from './frame-list.ts';
import {
  at,
  isObject,
  type Json,
  list,
  natural,
  object,
  ownHeader,
  readOwnHeader,
  text,
  toBytes,
} from './json.ts';
import type { FrameType, Profile, Sample } from './profile.ts';
import { type Owner, ProfileBuilder } from './profile-builder.ts';
import { groupThreads, type ThreadGroup } from './thread-groups.ts';

/** Colours are the program's own names. */
const CATEGORIES: readonly { name: string; color: string; types: readonly FrameType[] }[] = [
  { name: 'Other', color: 'grey', types: ['', 'abort-marker'] },
  { name: 'Native', color: 'blue', types: ['native'] },
  { name: 'Kernel', color: 'orange', types: ['kernel'] },
  { name: 'Go', color: 'lightblue', types: ['go'] },
  { name: 'Python', color: 'yellow', types: ['cpython'] },
  { name: 'JavaScript', color: 'green', types: ['v8js'] },
  { name: 'JVM', color: 'brown', types: ['jvm'] },
  { name: 'Runtime', color: 'purple', types: ['ruby', 'perl', 'php', 'phpjit', 'dotnet', 'beam', 'luajit'] },
];
const VERSION = 48;

export function writeFirefox(profile: Profile): Uint8Array {
  const startMs = Number(profile.timeUnixNano) / 1e6;
  const frames = new FrameList(profile);
  const threads = groupThreads(profile).map((group) => new ThreadWriter(profile, frames, group).write());
  return toBytes({
    meta: {
      ...{ version: 27, preprocessedProfileVersion: VERSION, processType: 0, product: 'everyframe' },
      ...{ interval: Number(profile.period) / 1e6 || 1, startTime: startMs, stackwalk: 1, debug: false },
      ...{ symbolicated: true, markerSchema: [], importedFrom: 'everyframe', usesOnlyOneStackType: true },
      categories: CATEGORIES.map(({ name, color }) => ({ name, color, subcategories: ['Other'] })),
      extensions: { length: 0, baseURL: [], id: [], name: [] },
      sampleUnits: { time: 'ms', eventDelay: 'ms', threadCPUDelta: 'ns' },
      sourceCodeIsNotOnSearchfox: true,
      everyframe: ownHeader(profile),
    },
    libs: [],
    pages: [],
    counters: [],
    profilerOverhead: [],
    threads,
  });
}

/** One event, or all of a sample entry that kept no times. */
interface Point {
  timeMs: number;
  sample: Sample;
  weight: number;
}

class ThreadWriter {
  readonly #profile: Profile;
  readonly #frames: FrameList;
  readonly #group: ThreadGroup;
  readonly #strings = new Map<string, number>();
  readonly #func = { name: [] as number[], fileName: [] as (number | null)[], type: [] as FrameType[] };
  readonly #funcs = new Map<string, number>();
  readonly #frame = { func: [] as number[], line: [] as (number | null)[], column: [] as (number | null)[] };
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
    const { process, pid, tid, thread, samples } = this.#group;
    const points = samples.flatMap((sample) => this.#points(sample)).sort((a, b) => a.timeMs - b.timeMs);
    const stack = points.map(({ sample }) => this.#stackOf(sample.stack));
    const none = (length: number): null[] => new Array(length).fill(null);
    const zeros = (length: number): number[] => new Array(length).fill(0);
    const { func, frame, stack: nodes } = this.#finishTables();
    const frameCategory = frame.func.map((index) => categoryOf(func.type[index]!));
    const nodeCategory = nodes.frame.map((index) => frameCategory[index]!);
    return {
      ...{ processType: 'default', processName: process, name: thread || process, pid: String(pid), tid },
      ...{ isMainThread: pid === tid, registerTime: 0, unregisterTime: null, pausedRanges: [] },
      ...{ processStartupTime: 0, processShutdownTime: null, showMarkersInTimeline: false },
      samples: {
        length: points.length,
        stack,
        time: points.map(({ timeMs }) => timeMs),
        weight: points.map(({ weight }) => weight),
        weightType: 'samples',
      },
      markers: { length: 0, data: [], name: [], startTime: [], endTime: [], phase: [], category: [] },
      stackTable: {
        ...{ length: nodes.frame.length, frame: nodes.frame, prefix: nodes.prefix },
        ...{ category: nodeCategory, subcategory: zeros(nodes.frame.length) },
      },
      frameTable: {
        ...{ length: frame.func.length, ...frame, address: new Array(frame.func.length).fill(-1) },
        ...{ inlineDepth: zeros(frame.func.length), category: frameCategory },
        ...{ subcategory: zeros(frame.func.length), nativeSymbol: none(frame.func.length) },
        ...{ innerWindowID: none(frame.func.length), implementation: none(frame.func.length) },
      },
      funcTable: {
        ...{ length: func.name.length, name: func.name, fileName: func.fileName },
        ...{ isJS: func.type.map((type) => type === 'v8js'), resource: new Array(func.name.length).fill(-1) },
        relevantForJS: new Array(func.name.length).fill(false),
        ...{ lineNumber: none(func.name.length), columnNumber: none(func.name.length) },
      },
      resourceTable: { length: 0, lib: [], name: [], host: [], type: [] },
      nativeSymbols: { length: 0, libIndex: [], address: [], name: [], functionSize: [] },
      stringArray: [...this.#strings.keys()],
      everyframe: { process, pid, tid, thread, frameTypes: func.type },
    };
  }

  #finishTables() {
    return { func: this.#func, frame: this.#frame, stack: this.#stack };
  }

  #points(sample: Sample): Point[] {
    if (sample.timestamps.length === 0) return [{ timeMs: 0, sample, weight: sample.count }];
    const start = this.#profile.timeUnixNano;
    return sample.timestamps.map((time) => ({ timeMs: Number(time - start) / 1e6, sample, weight: 1 }));
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
      const { name, file, line, column, frameType } = this.#frames.frames[index]!;
      own = this.#frame.func.push(this.#funcOf(name, file, frameType)) - 1;
      this.#frame.line.push(line || null);
      this.#frame.column.push(column || null);
      this.#frameIndices.set(index, own);
    }
    return own;
  }

  #funcOf(name: string, file: string, type: FrameType): number {
    const key = `${type}\0${file}\0${name}`;
    let index = this.#funcs.get(key);
    if (index === undefined) {
      index = this.#func.name.push(this.#string(name)) - 1;
      this.#func.fileName.push(file === '' ? null : this.#string(file));
      this.#func.type.push(type);
      this.#funcs.set(key, index);
    }
    return index;
  }

  #string(value: string): number {
    const index = this.#strings.get(value) ?? this.#strings.size;
    this.#strings.set(value, index);
    return index;
  }
}

const categoryOf = (type: FrameType): number =>
  Math.max(
    0,
    CATEGORIES.findIndex(({ types }) => types.includes(type)),
  );

export const isFirefox = (value: unknown): boolean =>
  isObject(value) && isObject(value['meta']) && Array.isArray(value['threads']);

/** @throws Error where the file contradicts its format */
export function readFirefox(value: unknown): Profile {
  const file = object(value);
  const meta = object(file['meta']);
  if (meta['preprocessedProfileVersion'] === undefined)
    throw new Error('it is no processed profile: save it from profiler.firefox.com, which converts it');
  const builder = new ProfileBuilder();
  if (!readOwnHeader(builder.profile, meta['everyframe'])) {
    builder.profile.timeUnixNano = BigInt(Math.round((Number(meta['startTime']) || 0) * 1e6));
    builder.profile.period = BigInt(Math.round((Number(meta['interval']) || 0) * 1e6));
  }
  for (const thread of list(file['threads']))
    new ThreadReader(builder, object(thread), object(file['shared'])).read();
  return builder.profile;
}

class ThreadReader {
  readonly #builder: ProfileBuilder;
  readonly #thread: Json;
  readonly #shared: Json;
  readonly #strings: readonly unknown[];
  readonly #types: readonly unknown[];

  constructor(builder: ProfileBuilder, thread: Json, shared: Json) {
    this.#builder = builder;
    this.#thread = thread;
    this.#shared = shared;
    this.#strings = list(thread['stringArray'] ?? shared['stringArray']);
    this.#types = list(object(thread['everyframe'])['frameTypes']);
  }

  read(): void {
    const stacks = this.#readStacks();
    const samples = object(this.#thread['samples']);
    const [times, weights] = [list(samples['time']), list(samples['weight'])];
    const owner = this.#owner();
    for (const [i, stack] of list(samples['stack']).entries()) {
      const weight = weights.length === 0 ? 1 : natural(weights[i]);
      if (weight === 0) continue;
      const timeMs = weight === 1 ? Number(times[i]) : Number.NaN;
      const time = this.#builder.profile.timeUnixNano + BigInt(Math.round((timeMs || 0) * 1e6));
      const index = stack === null ? 0 : at(stacks, stack, 'stack');
      this.#builder.add(index, owner, weight, timeMs > 0 ? [time] : []);
    }
  }

  #owner(): Owner {
    const own = this.#thread['everyframe'];
    const name = text(this.#thread['processName']) || text(this.#thread['name']);
    const { process, pid, tid, thread } = isObject(own)
      ? own
      : { ...this.#thread, process: name, thread: this.#thread['name'] };
    return { process: text(process), pid: natural(pid), tid: natural(tid), thread: text(thread) };
  }

  #readStacks(): number[] {
    const table = object(this.#thread['stackTable'] ?? this.#shared['stackTable']);
    const locations = this.#readFrames();
    const leafFirst: number[][] = [];
    return list(table['frame']).map((frame, i) => {
      const prefix = list(table['prefix'])[i];
      // a prefix comes before what it is a prefix of: no cycles
      const callers = typeof prefix === 'number' ? at(leafFirst, prefix, 'stack') : [];
      leafFirst[i] = [at(locations, frame, 'frame'), ...callers];
      return this.#builder.stack(leafFirst[i]!);
    });
  }

  #readFrames(): number[] {
    const frames = object(this.#thread['frameTable'] ?? this.#shared['frameTable']);
    const funcs = object(this.#thread['funcTable'] ?? this.#shared['funcTable']);
    const [names, files] = [list(funcs['name']), list(funcs['fileName'])];
    const string = (index: unknown): string => (typeof index === 'number' ? text(this.#strings[index]) : '');
    return list(frames['func']).map((func, i) =>
      this.#builder.location({
        name: string(at(names, func, 'function')),
        file: string(files[Number(func)]),
        line: natural(list(frames['line'])[i]),
        column: natural(list(frames['column'])[i]),
        frameType: (text(this.#types[Number(func)]) || 'native') as FrameType,
      }),
    );
  }
}
