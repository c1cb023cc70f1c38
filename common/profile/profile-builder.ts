/** Makes a profile out of what formats without tables of locations say: names, files and lines. */
import { intern } from './intern.ts';
import { emptyMapping, emptyProcess, emptyProfile, type FrameType, type Profile } from './profile.ts';

export interface FrameText {
  name: string;
  file?: string;
  line?: number;
  column?: number;
  frameType?: FrameType;
  /** Path or name of the library. */
  mapping?: string;
  /** The library's GNU build ID. */
  buildId?: string;
  address?: bigint;
}

export interface Owner {
  process: string;
  pid: number;
  tid: number;
  thread: string;
  cpu?: number;
}

export class ProfileBuilder {
  readonly profile: Profile = emptyProfile();
  readonly #functions = new Map<string, number>();
  readonly #mappings = new Map<string, number>([['\0', 0]]);
  readonly #locations = new Map<string, number>();
  readonly #stacks = new Map<string, number>([['', 0]]);
  readonly #processes = new Map<string, number>();
  readonly #samples = new Map<string, number>();

  /** A frame is a location with one line. A frame without a name is where it is. */
  location(frame: FrameText): number {
    const { name, file = '', line = 0, column = 0, frameType = 'native', address = 0n } = frame;
    const mapping = this.#mapping(frame.mapping ?? '', frame.buildId ?? '');
    const key = `${mapping}/${address}/${line}/${column}/${frameType}/${file}\0${name}`;
    return intern(this.#locations, key, this.profile.locations, () => ({
      ...{ mapping, address, frameType },
      lines: name === '' ? [] : [{ func: this.#function(name, file), line, column }],
    }));
  }

  /** A frame whose function was compiled into that of `location`: both are one location. */
  inlined(frame: FrameText, location: number): number {
    const { name, file = '', line = 0, column = 0 } = frame;
    const key = `${location} ${line}/${column}/${file}\0${name}`;
    const into = this.profile.locations[location]!;
    return intern(this.#locations, key, this.profile.locations, () => ({
      ...into,
      lines: [{ func: this.#function(name, file), line, column }, ...into.lines],
    }));
  }

  /** @param locations leaf first */
  stack(locations: readonly number[]): number {
    return intern(this.#stacks, locations.join(), this.profile.stacks, () => Uint32Array.from(locations));
  }

  /** Adds `count` events; those of one stack and thread are one sample. */
  add(stack: number, owner: Owner, count: number, timestamps: readonly bigint[] = []): void {
    const { samples } = this.profile;
    const { tid, thread, cpu = -1 } = owner;
    const process = this.#process(owner.process, owner.pid);
    const isTimed = timestamps.length > 0;
    const key = `${stack}/${process}/${tid}/${cpu}/${isTimed}/${thread}`;
    const index = intern(this.#samples, key, samples, () => ({
      ...{ stack, process, tid, threadName: thread, cpu, count: 0, timestamps: [] },
    }));
    samples[index]!.count += count;
    for (const timestamp of timestamps) samples[index]!.timestamps.push(timestamp);
  }

  #function(name: string, filename: string): number {
    const entry = { name, systemName: '', filename, startLine: 0 };
    return intern(this.#functions, `${name}\0${filename}`, this.profile.functions, () => entry);
  }

  #mapping(filename: string, gnuBuildId: string): number {
    const entry = { ...emptyMapping(), filename, gnuBuildId };
    return intern(this.#mappings, `${filename}\0${gnuBuildId}`, this.profile.mappings, () => entry);
  }

  #process(executableName: string, pid: number): number {
    const entry = { ...emptyProcess(), executableName, pid };
    return intern(this.#processes, `${pid}\0${executableName}`, this.profile.processes, () => entry);
  }
}

/** Kernel frames where a format has names only: perf's and FlameGraph's convention. */
const KERNEL_SUFFIX = '_[k]';

export const markKernel = (name: string, frameType: FrameType): string =>
  frameType === 'kernel' ? name + KERNEL_SUFFIX : name;

/** The agent's marker of a stack that was cut: no frame of the program. */
export const isMarkerName = (name: string): boolean => /^\[cut: .*\]$/.test(name);

/** What a name tells of its frame's type where nothing else does. */
export function frameOfName(text: string): { name: string; frameType: FrameType } {
  if (isMarkerName(text)) return { name: text, frameType: 'abort-marker' };
  if (!text.endsWith(KERNEL_SUFFIX)) return { name: text, frameType: 'native' };
  return { name: text.slice(0, -KERNEL_SUFFIX.length), frameType: 'kernel' };
}
