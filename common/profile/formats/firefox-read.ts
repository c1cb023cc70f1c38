/**
 * Reads the Firefox Profiler's processed format, of this product and of others, in every version up to 70:
 * https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md
 * Since version 56 threads share their strings, since 60 all tables; names of source files are in a table of their
 * own since 58, a stack's caller is told by its distance since 66, a frame's library stands with the frame since 70.
 */

import { placeInName } from '../model/frame-name.ts';
import { at, isObject, type Json, list, natural, object, readOwnHeader, text } from '../model/json.ts';
import type { Profile } from '../model/profile.ts';
import { type FrameText, type Owner, ProfileBuilder } from '../model/profile-builder.ts';
import { countsSamples, cpuType, MAX_VALUE, NO_PERIOD, type ProfileType } from '../model/profile-type.ts';
import type { ReadBudget } from '../model/read-limits.ts';
import { ROOT } from '../model/stack-tree.ts';
import { frameTypeOf } from './firefox.ts';
import { weightsOf } from './firefox-points.ts';
import { readMark } from './thread-groups.ts';

/** Since version 60 all threads share them. */
const TABLE_NAMES = ['stringArray', 'stackTable', 'frameTable', 'funcTable', 'resourceTable'];

/** Of a stack's or frame's row as it is held while a thread is read. */
const TABLE_ROW_BYTES = 200;

export const isFirefox = (value: unknown): boolean =>
  isObject(value) && isObject(value['meta']) && Array.isArray(value['threads']);

/** @throws Error where the file contradicts its format */
export function readFirefox(value: unknown, budget?: ReadBudget): Profile {
  const file = object(value);
  const meta = object(file['meta']);
  if (meta['preprocessedProfileVersion'] === undefined)
    throw new Error('it is not a processed profile: save it from profiler.firefox.com, which converts it');
  const builder = new ProfileBuilder(budget);
  if (!readOwnHeader(builder.profile, meta['everyframe'])) {
    builder.profile.timeUnixNano = nanosOf(Number(meta['startTime']));
    builder.profile.type = typeOf(file, meta);
  }
  const shared = {};
  for (const thread of list(file['threads'])) new ThreadReader(builder, file, object(thread), shared).read();
  return builder.profile;
}

/** As the first thread weighs its samples. */
function typeOf(file: Json, meta: Json): ProfileType {
  const weightType = object(object(list(file['threads'])[0])['samples'])['weightType'];
  if (weightType === 'bytes') return { ...NO_PERIOD, sampleType: { type: 'memory', unit: 'bytes' } };
  if (weightType === 'tracing-ms') return { ...NO_PERIOD, sampleType: { type: 'wall', unit: 'nanoseconds' } };
  return cpuType(nanosOf(Number(meta['interval'])));
}

interface Frame extends FrameText {
  isInlined: boolean;
}

/** Where a stack of the file's table is in the tree of stacks: its leaf, and the node that calls it. */
interface Place {
  caller: number;
  location: number;
}

/** What a thread's stacks are read from. */
interface Tables {
  frames: readonly Frame[];
  stackFrames: readonly unknown[];
  callers: readonly (number | undefined)[];
  places: (Place | undefined)[];
}

class ThreadReader {
  readonly #builder: ProfileBuilder;
  readonly #file: Json;
  readonly #thread: Json;
  readonly #strings: readonly unknown[];
  readonly #tables: Tables;

  /** @param shared tables of all threads that have none of their own, once they are read */
  constructor(builder: ProfileBuilder, file: Json, thread: Json, shared: { tables?: Tables }) {
    this.#builder = builder;
    this.#file = file;
    this.#thread = thread;
    this.#strings = list(thread['stringArray'] ?? object(file['shared'])['stringArray']);
    const isShared = !TABLE_NAMES.some((name) => name in thread);
    this.#tables = (isShared ? shared.tables : undefined) ?? this.#readTables();
    if (isShared) shared.tables = this.#tables;
  }

  read(): void {
    const samples = object(this.#thread['samples']);
    const [times, weights] = [readTimes(samples), list(samples['weight'])];
    const owner = this.#owner();
    const isTimed = object(this.#thread['everyframe'])['isTimed'] !== false;
    const { type } = this.#builder.profile;
    const { scale } = weightsOf(this.#builder.profile);
    for (const [i, stack] of list(samples['stack']).entries()) {
      const value = weights.length === 0 ? 1 : rounded(Number(weights[i]) / scale);
      if (value === 0) continue;
      const isEvent = isTimed && (value === 1 || !countsSamples(type));
      const sinceStart = isEvent ? nanosOf(Number(times[i])) : 0n;
      const time = this.#builder.profile.timeUnixNano + sinceStart;
      const values = value === 1 ? undefined : [value];
      if (sinceStart > 0n) this.#builder.add(this.#stack(stack), owner, value, [time], values);
      else this.#builder.add(this.#stack(stack), owner, value);
    }
  }

  #table(name: string): Json {
    return object(this.#thread[name] ?? object(this.#file['shared'])[name]);
  }

  #owner(): Owner {
    const { processName, name, pid, tid } = this.#thread;
    const own = readMark(this.#thread['everyframe']);
    const process = text(processName) || text(name);
    return own ?? { process, pid: natural(pid), tid: natural(tid), thread: text(name) };
  }

  #stack(index: unknown): number {
    if (index === null) return 0;
    at(this.#tables.stackFrames, index, 'stack');
    const { caller, location } = this.#place(Number(index));
    return this.#builder.stackAt(this.#builder.enter(caller, location));
  }

  /** Callers come first in the table: what is not known yet is found from the nearest one that is. */
  #place(stack: number): Place {
    const { callers, places } = this.#tables;
    const waiting: number[] = [];
    for (let node: number | undefined = stack; node !== undefined && !places[node]; node = callers[node])
      waiting.push(node);
    for (const node of waiting.reverse()) {
      const caller = callers[node];
      places[node] = this.#below(caller === undefined ? undefined : places[caller], node);
    }
    return places[stack]!;
  }

  #below(caller: Place | undefined, stack: number): Place {
    const { frames, stackFrames } = this.#tables;
    const frame = at(frames, stackFrames[stack], 'frame');
    if (!caller) return { caller: ROOT, location: this.#builder.location(frame) };
    if (frame.isInlined)
      return { caller: caller.caller, location: this.#builder.inlined(frame, caller.location) };
    const node = this.#builder.enter(caller.caller, caller.location);
    return { caller: node, location: this.#builder.location(frame) };
  }

  #readTables(): Tables {
    const table = this.#table('stackTable');
    const stackFrames = list(table['frame']);
    const { budget } = this.#builder;
    // a thread may have one small table of its own, and read the others anew
    budget.spend('stacks of threads', TABLE_ROW_BYTES * stackFrames.length, stackFrames.length);
    const frameCount = list(this.#table('frameTable')['func']).length;
    budget.spend('frames of threads', TABLE_ROW_BYTES * frameCount, frameCount);
    const callers = readCallers(table, stackFrames.length);
    return { frames: this.#readFrames(), stackFrames, callers, places: new Array(stackFrames.length) };
  }

  #readFrames(): Frame[] {
    const [frames, funcs] = [this.#table('frameTable'), this.#table('funcTable')];
    const column = (table: Json, name: string): readonly unknown[] => list(table[name]);
    const [names, lines, columns] = [column(funcs, 'name'), column(frames, 'line'), column(frames, 'column')];
    const [depths, addresses] = [column(frames, 'inlineDepth'), column(frames, 'address')];
    const [categories, meta] = [column(frames, 'category'), object(this.#file['meta'])];
    const kinds = list(meta['categories']).map((one) => frameTypeOf(text(object(one)['name'])));
    return column(frames, 'func').map((func, i) => {
      const [address, name] = [natural(addresses[i]), this.#string(at(names, func, 'function'))];
      const library = this.#library(frames, funcs, i, Number(func));
      const place = placeInName(name, library.mapping ?? '');
      return {
        // what has no name is written as where it is
        name: place === undefined ? name : '',
        ...(place !== undefined && place !== address && { functionStart: place }),
        file: this.#fileOf(funcs, Number(func)),
        ...{ line: natural(lines[i]), column: natural(columns[i]), address: BigInt(address) },
        frameType: kinds[Number(categories[i] ?? -1)] ?? 'native',
        ...library,
        isInlined: natural(depths[i]) > 0,
      };
    });
  }

  #string(index: unknown): string {
    return typeof index === 'number' ? text(this.#strings[index]) : '';
  }

  #fileOf(funcs: Json, func: number): string {
    const source = list(funcs['source'])[func];
    if (typeof source !== 'number') return this.#string(list(funcs['fileName'])[func]);
    return this.#string(list(this.#table('sources')['filename'])[source]);
  }

  #library(frames: Json, funcs: Json, frame: number, func: number): { mapping?: string; buildId?: string } {
    const resource = Number(list(funcs['resource'])[func] ?? -1);
    const index = list(frames['lib'])[frame] ?? list(this.#table('resourceTable')['lib'])[resource];
    const lib = typeof index === 'number' ? list(this.#file['libs'])[index] : undefined;
    if (!isObject(lib)) return {};
    return { mapping: text(lib['path']) || text(lib['name']), buildId: text(lib['codeId']) };
  }
}

/** @throws Error where a stack is not behind its caller: there are no cycles */
function readCallers(table: Json, length: number): (number | undefined)[] {
  const [prefixes, offsets] = [list(table['prefix']), list(table['prefixOffset'])];
  return Array.from({ length }, (_, i) => {
    const offset = natural(offsets[i]);
    const caller = offset > 0 ? i - offset : prefixes[i];
    if (typeof caller !== 'number') return undefined;
    if (!(Number.isInteger(caller) && caller >= 0 && caller < i))
      throw new Error(`stack ${i} is said to be called by ${caller}`);
    return caller;
  });
}

/** Of milliseconds; 0 for what is not a time after the start, and for more than 64 bits hold together with another. */
const nanosOf = (ms: number): bigint => (ms > 0 && ms * 1e6 < 2 ** 62 ? BigInt(Math.round(ms * 1e6)) : 0n);

/** A value above 0, else 0. */
function rounded(weight: number): number {
  const value = Math.round(weight);
  return value > 0 && value <= MAX_VALUE ? value : 0;
}

function readTimes(samples: Json): readonly unknown[] {
  if (!Array.isArray(samples['timeDeltas'])) return list(samples['time']);
  let time = 0;
  return samples['timeDeltas'].map((delta) => {
    time += Number(delta) || 0;
    return time;
  });
}
