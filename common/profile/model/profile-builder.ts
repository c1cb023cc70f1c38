/** Makes a profile out of what formats without tables of locations say: names, files and lines. */
import { intern } from './intern.ts';
import {
  addEvents,
  emptyMapping,
  emptyProcess,
  emptyProfile,
  type FrameType,
  type Profile,
} from './profile.ts';
import { ReadBudget } from './read-limits.ts';
import { ROOT, StackTree } from './stack-tree.ts';

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
  /** See Location. */
  functionStart?: number;
}

export interface Owner {
  process: string;
  pid: number;
  tid: number;
  thread: string;
  cpu?: number;
}

/** Estimates of what entries hold, with their key in a table and their copy where profiles are merged. */
const LOCATION_BYTES = 800;
const NODE_BYTES = 24;
const STACK_BYTES = 400;
/** Of a stack that is written out. */
const FRAME_BYTES = 16;
const PROCESS_BYTES = 600;
const SAMPLE_BYTES = 500;
const TIME_BYTES = 64;

export class ProfileBuilder {
  readonly profile: Profile = emptyProfile();
  readonly budget: ReadBudget;
  readonly #tree = new StackTree();
  readonly #functions = new Map<string, number>();
  readonly #mappings = new Map<string, number>([['\0', 0]]);
  readonly #locations = new Map<string, number>();
  /** Index of each node's stack, where it is one. */
  readonly #stacks = new Map<number, number>([[ROOT, 0]]);
  readonly #processes = new Map<string, number>();
  readonly #samples = new Map<string, number>();

  constructor(budget = new ReadBudget()) {
    this.budget = budget;
  }

  /** A frame is a location with one line. A frame without a name is where it is. */
  location(frame: FrameText): number {
    const {
      name,
      file = '',
      line = 0,
      column = 0,
      frameType = 'native',
      address = 0n,
      functionStart,
    } = frame;
    const mapping = this.#mapping(frame.mapping ?? '', frame.buildId ?? '');
    const key = `${mapping}/${address}/${line}/${column}/${frameType}/${file}\0${name}\0${functionStart ?? ''}`;
    return intern(this.#locations, key, this.profile.locations, () => {
      this.budget.spend('frames', LOCATION_BYTES + 4 * key.length);
      const lines = name === '' ? [] : [{ func: this.#function(name, file), line, column }];
      return { mapping, address, frameType, lines, ...(functionStart !== undefined && { functionStart }) };
    });
  }

  /** A frame whose function was compiled into that of `location`: both are one location. */
  inlined(frame: FrameText, location: number): number {
    const { name, file = '', line = 0, column = 0 } = frame;
    const key = `${location} ${line}/${column}/${file}\0${name}`;
    const into = this.profile.locations[location]!;
    return intern(this.#locations, key, this.profile.locations, () => {
      this.budget.spend('frames', LOCATION_BYTES + 4 * key.length + 128 * into.lines.length);
      return { ...into, lines: [{ func: this.#function(name, file), line, column }, ...into.lines] };
    });
  }

  /** @param locations leaf first */
  stack(locations: readonly number[]): number {
    let node = ROOT;
    for (let i = locations.length - 1; i >= 0; i--) node = this.enter(node, locations[i]!);
    return this.stackAt(node);
  }

  /** A node of the tree of stacks: `location`, called from the node `caller`, which is 0 for a root. */
  enter(caller: number, location: number): number {
    const before = this.#tree.nodeCount;
    const node = this.#tree.enter(caller, location);
    if (node === before) this.budget.spend('stack nodes', NODE_BYTES);
    return node;
  }

  /** The stack whose leaf is that node. */
  stackAt(node: number): number {
    let stack = this.#stacks.get(node);
    if (stack === undefined) {
      const depth = this.#tree.depth(node);
      this.budget.spend('frames of stacks', STACK_BYTES + FRAME_BYTES * depth, depth);
      stack = this.profile.stacks.push(this.#tree.path(node)) - 1;
      this.#stacks.set(node, stack);
    }
    return stack;
  }

  /** Adds what some events of one stack and thread add up to; see {@link Sample} for `timestamps` and `values`. */
  add(stack: number, owner: Owner, value: number, timestamps: bigint[] = [], values?: number[]): void {
    const { samples } = this.profile;
    const { tid, thread, cpu = -1 } = owner;
    const process = this.#process(owner.process, owner.pid);
    const isTimed = timestamps.length > 0;
    const key = `${stack}/${process}/${tid}/${cpu}/${isTimed}/${thread}`;
    const index = intern(this.#samples, key, samples, () => {
      this.budget.spend('samples', SAMPLE_BYTES);
      return { stack, process, tid, threadName: copy(thread), cpu, value: 0, timestamps: [] };
    });
    if (isTimed) this.budget.spend('times', TIME_BYTES * timestamps.length, timestamps.length);
    addEvents(samples[index]!, values ? { value, timestamps, values } : { value, timestamps });
  }

  #function(name: string, filename: string): number {
    return intern(this.#functions, `${name}\0${filename}`, this.profile.functions, () => ({
      ...{ name: copy(name), systemName: '', filename: copy(filename), startLine: 0 },
    }));
  }

  #mapping(filename: string, gnuBuildId: string): number {
    return intern(this.#mappings, `${filename}\0${gnuBuildId}`, this.profile.mappings, () => ({
      ...{ ...emptyMapping(), filename: copy(filename), gnuBuildId: copy(gnuBuildId) },
    }));
  }

  #process(executableName: string, pid: number): number {
    return intern(this.#processes, `${pid}\0${executableName}`, this.profile.processes, () => {
      this.budget.spend('processes', PROCESS_BYTES);
      return { ...emptyProcess(), executableName: copy(executableName), pid };
    });
  }
}

/** A part of a text keeps all of it in memory. */
const copy = (text: string): string =>
  text.length < 13 ? text : Buffer.from(text, 'utf16le').toString('utf16le');

/** Kernel frames where a format has names only: perf's and FlameGraph's convention. */
const KERNEL_SUFFIX = '_[k]';

export const markKernel = (name: string, frameType: FrameType): string =>
  frameType === 'kernel' ? name + KERNEL_SUFFIX : name;

/** The agent's marker of a stack that was cut: no frame of the program. */
export const isMarkerName = (name: string): boolean => /^\[cut: .*\]$/.test(name);

/** What a name says of its frame's type where nothing else does. */
export function frameOfName(text: string): { name: string; frameType: FrameType } {
  if (isMarkerName(text)) return { name: text, frameType: 'abort-marker' };
  if (!text.endsWith(KERNEL_SUFFIX)) return { name: text, frameType: 'native' };
  return { name: text.slice(0, -KERNEL_SUFFIX.length), frameType: 'kernel' };
}
