/**
 * Frames of language runtimes. Each pair of words that stands for one in a process is named once; program counters of
 * one line, and processes that run the same program, share a frame.
 */

import type { Pid } from '../../common/base/brand.ts';
import { emptyMapping, type Mapping } from '../../common/profile/model/profile.ts';
import type { AssemblyPlace, LinesFrom, RuntimeFrame } from '../interpreters/contract.ts';
import type { ProcessIdentity } from '../records/records.ts';
import { isPlaced, type NamedRuntimeFrame } from '../runtimes/runtime-frames.ts';
import type { Frame, FrameLine } from './frame.ts';

/**
 * What stands for a frame, in numbers of 32 bits: a text of them would cost more than all the rest. The same words
 * may mean something else in the next execution of a process.
 */
interface IdentityNode {
  execution: number;
  operand: number;
  /** Kind and the rest of the operand. */
  head: number;
  low: number;
  high: number;
  frame: Frame;
  /** How often it is named again: its process may have moved what says where it is at that very moment. */
  triesLeft: number;
  /** Not before: what moves takes a while. In milliseconds of the clock. */
  nextTryMs: number;
  /** See {@link NamedRuntimeFrame}: that was not a try. */
  isForNow: boolean;
  /** Another one of the same hash. */
  next: IdentityNode | undefined;
}

interface Execution {
  process: ProcessIdentity;
  /** None is given twice. */
  number: number;
  /** Another one of the same process. */
  next: Execution | undefined;
}

interface ContentNode {
  frame: Frame;
  /** As they were named: those of the frame may be their sources by now. */
  lines: readonly FrameLine[];
  assemblies: readonly (AssemblyPlace | undefined)[];
  /** The same path is another file in another root. */
  root: number;
  next: ContentNode | undefined;
}

/** Tries to name a frame without a line; some never have one. */
const TRIES = 2;
const RETRY_AFTER_MS = 250;

/** Shared: of frames that have none. */
export const NO_MAPPING: Mapping = emptyMapping();

/** Places in what was written, of what runs. */
export interface PlaceSource {
  /** Tells file systems apart in which processes see their files. */
  rootOf(process: ProcessIdentity): number;
  /** Completes the frame in place, now or later. `lines`: as its runtime has them. */
  add(pid: Pid, frame: Frame, lines: readonly RuntimeFrame[]): void;
  /** Waits for what was added. */
  symbolizeFrames(): Promise<void>;
}

export type PlaceSources = Partial<Record<LinesFrom, PlaceSource>>;

export class InterpretedFrames {
  readonly #places: PlaceSources;
  #executions = new Map<Pid, Execution>();
  #lastExecution = 0;
  #byIdentity = new Map<number, IdentityNode>();
  #byContent = new Map<number, ContentNode>();
  readonly #now: () => number;
  /** Frames that may be other ones soon. */
  #unsettled = 0;
  #size = 0;

  constructor(places: PlaceSources = {}, now = (): number => performance.now()) {
    this.#places = places;
    this.#now = now;
  }

  /**
   * The frame of the two words from `u32Pairs[at]` on. Undefined: it is to be named, and added; that is so for what was not seen
   * before, and a few times again where naming it did not tell its line. Runs for each frame: no object is made for it.
   */
  find(process: ProcessIdentity, u32Pairs: Uint32Array, at: number): Frame | undefined {
    const node = this.#nodeOf(process, u32Pairs, at);
    return node && (node.triesLeft === 0 || this.#now() < node.nextTryMs) ? node.frame : undefined;
  }

  /** Adds a frame that {@link find} did not find; a known frame stays as it was if no more is known now. */
  add(process: ProcessIdentity, u32Pairs: Uint32Array, at: number, named: NamedRuntimeFrame): Frame {
    const known = this.#nodeOf(process, u32Pairs, at);
    if (!known) return this.#newNode(process, u32Pairs, at, named).frame;
    if (named.isForNow || known.triesLeft === 0) return known.frame;
    const hasPlaces = named.lines.every(isPlaced);
    known.triesLeft = hasPlaces ? 0 : known.triesLeft - 1;
    known.nextTryMs = this.#now() + RETRY_AFTER_MS;
    if (hasPlaces || known.isForNow) known.frame = this.#intern(process, named);
    known.isForNow = false;
    if (known.triesLeft === 0) this.#unsettled--;
    return known.frame;
  }

  /** How many there are, those that are for now among them. */
  get size(): number {
    return this.#size;
  }

  /** May the frame of those words be another one soon? */
  isForNow(process: ProcessIdentity, u32Pairs: Uint32Array, at: number): boolean {
    return this.#unsettled > 0 && (this.#nodeOf(process, u32Pairs, at)?.triesLeft ?? 0) > 0;
  }

  #nodeOf(process: ProcessIdentity, u32Pairs: Uint32Array, at: number): IdentityNode | undefined {
    const execution = this.#executionOf(process);
    let node = this.#byIdentity.get(hashOfWords(execution, u32Pairs, at));
    while (node && !(node.execution === execution && hasWords(node, u32Pairs, at))) node = node.next;
    return node;
  }

  #executionOf({ pid, execId, startBoottimeNs }: ProcessIdentity): number {
    const newest = this.#executions.get(pid);
    for (let known = newest; known; known = known.next) {
      const { process, number } = known;
      if (process.execId === execId && process.startBoottimeNs === startBoottimeNs) return number;
    }
    const number = ++this.#lastExecution;
    this.#executions.set(pid, { process: { pid, execId, startBoottimeNs }, number, next: newest });
    return number;
  }

  #newNode(
    process: ProcessIdentity,
    u32Pairs: Uint32Array,
    at: number,
    named: NamedRuntimeFrame,
  ): IdentityNode {
    const execution = this.#executionOf(process);
    const hash = hashOfWords(execution, u32Pairs, at);
    const isForNow = named.isForNow ?? false;
    const node = {
      execution,
      // signed: V8 makes an object of a larger number
      operand: u32Pairs[at]! | 0,
      head: u32Pairs[at + 1]! | 0,
      low: u32Pairs[at + 2]! | 0,
      high: u32Pairs[at + 3]! | 0,
      frame: this.#intern(process, named),
      triesLeft: !isForNow && named.lines.every(isPlaced) ? 0 : TRIES,
      nextTryMs: isForNow ? 0 : this.#now() + RETRY_AFTER_MS,
      isForNow,
      next: this.#byIdentity.get(hash),
    };
    this.#byIdentity.set(hash, node);
    this.#size++;
    if (node.triesLeft > 0) this.#unsettled++;
    return node;
  }

  forget(): void {
    this.#executions = new Map();
    this.#byIdentity = new Map();
    this.#byContent = new Map();
    this.#unsettled = 0;
    this.#size = 0;
  }

  #intern(process: ProcessIdentity, { frameType, linesFrom, lines }: NamedRuntimeFrame): Frame {
    const places = linesFrom && this.#places[linesFrom];
    const root = places?.rootOf(process) ?? 0;
    const assemblies = assembliesOf(lines);
    const hash = lines.reduce((sum, line) => Math.imul(sum, 31) + hashOf(line), 0) | 0;
    const first = this.#byContent.get(hash);
    for (let node = first; node; node = node.next) {
      const isSameKind = node.frame.frameType === frameType && node.root === root;
      if (isSameKind && areSameLines(node.lines, lines) && areSamePlaces(node.assemblies, assemblies))
        return node.frame;
    }
    const frameLines = lines.map(toFrameLine);
    const frame: Frame = {
      mapping: NO_MAPPING,
      address: 0,
      frameType,
      // sources take the place of lines
      lines: places ? [...frameLines] : frameLines,
      generated: '',
      number: undefined,
      isChanged: true,
    };
    this.#byContent.set(hash, { frame, lines: frameLines, assemblies, root, next: first });
    places?.add(process.pid, frame, lines);
    return frame;
  }
}

function hashOfWords(execution: number, u32Pairs: Uint32Array, at: number): number {
  const operand = u32Pairs[at]! ^ Math.imul(u32Pairs[at + 2]!, 31);
  return (execution ^ Math.imul(operand, 31) ^ Math.imul(u32Pairs[at + 3]!, 961)) | 0;
}

const hasWords = (node: IdentityNode, u32Pairs: Uint32Array, at: number): boolean =>
  node.operand === (u32Pairs[at]! | 0) &&
  node.head === (u32Pairs[at + 1]! | 0) &&
  node.low === (u32Pairs[at + 2]! | 0) &&
  node.high === (u32Pairs[at + 3]! | 0);

const NO_ASSEMBLIES: readonly (AssemblyPlace | undefined)[] = [];

const assembliesOf = (lines: readonly RuntimeFrame[]): readonly (AssemblyPlace | undefined)[] =>
  lines.some(({ assembly }) => assembly) ? lines.map(({ assembly }) => assembly) : NO_ASSEMBLIES;

const areSamePlaces = (
  known: readonly (AssemblyPlace | undefined)[],
  places: readonly (AssemblyPlace | undefined)[],
): boolean =>
  known === places ||
  (known.length === places.length &&
    known.every((a, i) => {
      const b = places[i];
      const isSamePlace = a?.row === b?.row && a?.ilOffset === b?.ilOffset;
      return isSamePlace && a?.moduleId === b?.moduleId && a?.file === b?.file;
    }));

/** Property by property: copies by spreading would have a hidden class each. */
const toFrameLine = ({ name, file, line, column, startLine, startColumn = 0 }: RuntimeFrame): FrameLine => ({
  function: name,
  systemName: '',
  file,
  line,
  column,
  startLine,
  startColumn,
});

function hashOf({ name, file, line, column, assembly }: RuntimeFrame): number {
  let hash = Math.imul(line, 961) + Math.imul(column, 31) + file.length + (assembly?.ilOffset ?? 0);
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash, 31) + name.charCodeAt(i);
  return hash | 0;
}

const areSameLines = (lines: readonly FrameLine[], named: readonly RuntimeFrame[]): boolean =>
  lines.length === named.length &&
  lines.every((a, i) => {
    const b = named[i]!;
    const isSamePlace = a.line === b.line && a.column === b.column && a.startLine === b.startLine;
    return isSamePlace && a.function === b.name && a.file === b.file;
  });
