/**
 * Reads the Firefox Profiler's processed format, of this product and of others, in every version up to 70:
 * https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md
 * Since version 56 threads share their strings, since 60 all tables; names of source files are in a table of their
 * own since 58, a stack's caller is told by its distance since 66, a frame's library stands with the frame since 70.
 */
import { frameTypeOf } from './firefox.ts';
import { placeName } from './frame-name.ts';
import { at, isObject, type Json, list, natural, object, readOwnHeader, text } from './json.ts';
import type { Profile } from './profile.ts';
import { type FrameText, type Owner, ProfileBuilder } from './profile-builder.ts';
import { readMark } from './thread-groups.ts';

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
  for (const thread of list(file['threads'])) new ThreadReader(builder, file, object(thread)).read();
  return builder.profile;
}

interface Frame extends FrameText {
  isInlined: boolean;
}

class ThreadReader {
  readonly #builder: ProfileBuilder;
  readonly #file: Json;
  readonly #thread: Json;
  readonly #strings: readonly unknown[];
  readonly #frames: readonly Frame[];
  readonly #stackFrames: readonly unknown[];
  readonly #callers: readonly (number | undefined)[];
  readonly #stacks = new Map<number, number>();

  constructor(builder: ProfileBuilder, file: Json, thread: Json) {
    this.#builder = builder;
    this.#file = file;
    this.#thread = thread;
    this.#strings = list(thread['stringArray'] ?? object(file['shared'])['stringArray']);
    this.#frames = this.#readFrames();
    const table = this.#table('stackTable');
    this.#stackFrames = list(table['frame']);
    this.#callers = readCallers(table, this.#stackFrames.length);
  }

  read(): void {
    const samples = object(this.#thread['samples']);
    const [times, weights] = [readTimes(samples), list(samples['weight'])];
    const owner = this.#owner();
    const isTimed = object(this.#thread['everyframe'])['isTimed'] !== false;
    for (const [i, stack] of list(samples['stack']).entries()) {
      const weight = weights.length === 0 ? 1 : natural(weights[i]);
      if (weight === 0) continue;
      const timeMs = isTimed && weight === 1 ? Number(times[i]) : Number.NaN;
      const time = this.#builder.profile.timeUnixNano + BigInt(Math.round((timeMs || 0) * 1e6));
      this.#builder.add(this.#stack(stack), owner, weight, timeMs > 0 ? [time] : []);
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
    at(this.#stackFrames, index, 'stack');
    let stack = this.#stacks.get(Number(index));
    if (stack === undefined) {
      stack = this.#builder.stack(this.#locations(Number(index)));
      this.#stacks.set(Number(index), stack);
    }
    return stack;
  }

  /** Leaf first. */
  #locations(stack: number): number[] {
    const path: Frame[] = [];
    for (let node: number | undefined = stack; node !== undefined; node = this.#callers[node])
      path.push(at(this.#frames, this.#stackFrames[node], 'frame'));
    const rootFirst: number[] = [];
    for (const frame of path.reverse()) {
      const caller = rootFirst.at(-1);
      if (frame.isInlined && caller !== undefined)
        rootFirst.splice(-1, 1, this.#builder.inlined(frame, caller));
      else rootFirst.push(this.#builder.location(frame));
    }
    return rootFirst.reverse();
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
      return {
        // what has no name is written as where it is
        name: library.mapping && name === placeName(library.mapping, BigInt(address)) ? '' : name,
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

function readTimes(samples: Json): readonly unknown[] {
  if (!Array.isArray(samples['timeDeltas'])) return list(samples['time']);
  let time = 0;
  return samples['timeDeltas'].map((delta) => {
    time += Number(delta) || 0;
    return time;
  });
}
