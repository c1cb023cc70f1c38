/**
 * Frames of language runtimes. Each pair of words that stands for one in a process is named once; program counters of
 * one line, and processes that run the same program, share a frame.
 */
import type { Pid } from '../../common/base/brand.ts';
import { emptyMapping, type Mapping } from '../../common/profile/profile.ts';
import type { RuntimeFrame } from '../interpreters/contract.ts';
import type { NamedRuntimeFrame } from '../interpreters/runtime-frames.ts';
import type { ProcessIdentity } from '../tracer/records.ts';
import type { Frame, FrameLine } from './frame-resolver.ts';

/**
 * What stands for a frame, in numbers of 32 bits: a text of them would cost more than all the rest. The same words
 * may mean something else in the next execution of a process.
 */
interface IdentityNode extends ProcessIdentity {
  operand: number;
  /** Kind and the rest of the operand. */
  head: number;
  low: number;
  high: number;
  frame: Frame;
  /** How often it is named again: its process may have moved what says where it is at that very moment. */
  triesLeft: number;
  /** Another one of the same hash. */
  next: IdentityNode | undefined;
}

interface ContentNode {
  frame: Frame;
  /** As they were named: those of the frame may be their sources by now. */
  lines: readonly RuntimeFrame[];
  /** The same path is another script in another root. */
  root: number;
  next: ContentNode | undefined;
}

/** Of frames without a line; some never have one. */
const TRIES = 2;

/** Shared: of frames that have none. */
export const NO_MAPPING: Mapping = emptyMapping();

/** Sources from which scripts were made. */
export interface ScriptSource {
  /** Tells file systems apart in which processes see their scripts. */
  rootOf(pid: Pid): number;
  /** Completes the frame in place, now or later. */
  add(pid: Pid, frame: Frame): void;
  /** Waits for what was added. */
  nameFrames(): Promise<void>;
}

export class InterpretedFrames {
  readonly #scripts: ScriptSource | undefined;
  #byIdentity = new Map<number, IdentityNode>();
  #byContent = new Map<number, ContentNode>();
  /** Of processes with scripts. */
  #roots = new Map<Pid, number>();

  constructor(scripts?: ScriptSource) {
    this.#scripts = scripts;
  }

  /**
   * The frame of the two words from `halves[at]` on. Undefined: it is to be named, and added; that is so for what was not met
   * before, and a few times again where naming it did not tell its line. Runs for each frame: no object is made for it.
   */
  find(process: ProcessIdentity, halves: Uint32Array, at: number): Frame | undefined {
    const node = this.#nodeOf(process, halves, at);
    return node && node.triesLeft === 0 ? node.frame : undefined;
  }

  /** What {@link find} did not find; the frame stays as it was where no more is known now. */
  add(process: ProcessIdentity, halves: Uint32Array, at: number, named: NamedRuntimeFrame): Frame {
    const known = this.#nodeOf(process, halves, at);
    if (!known) return this.#newNode(process, halves, at, this.#intern(process.pid, named)).frame;
    known.triesLeft--;
    if (named.lines.every(isPlaced)) {
      known.triesLeft = 0;
      known.frame = this.#intern(process.pid, named);
    }
    return known.frame;
  }

  #nodeOf(process: ProcessIdentity, halves: Uint32Array, at: number): IdentityNode | undefined {
    let node = this.#byIdentity.get(hashOfWords(process.pid, halves, at));
    while (node && !(hasWords(node, halves, at) && isSameExecution(node, process))) node = node.next;
    return node;
  }

  #newNode(
    { pid, execId, startBoottimeNs }: ProcessIdentity,
    halves: Uint32Array,
    at: number,
    frame: Frame,
  ): IdentityNode {
    const hash = hashOfWords(pid, halves, at);
    const node = {
      pid,
      execId,
      startBoottimeNs,
      // signed: V8 makes an object of a larger number
      operand: halves[at]! | 0,
      head: halves[at + 1]! | 0,
      low: halves[at + 2]! | 0,
      high: halves[at + 3]! | 0,
      frame,
      triesLeft: lacksLine(frame) ? TRIES : 0,
      next: this.#byIdentity.get(hash),
    };
    this.#byIdentity.set(hash, node);
    return node;
  }

  forget(): void {
    this.#byIdentity = new Map();
    this.#byContent = new Map();
    this.#roots = new Map();
  }

  /** It ended, or runs another program now. */
  forgetProcess(pid: Pid): void {
    this.#roots.delete(pid);
  }

  #rootOf(pid: Pid): number {
    const root = this.#roots.get(pid) ?? this.#scripts?.rootOf(pid) ?? 0;
    this.#roots.set(pid, root);
    return root;
  }

  #intern(pid: Pid, { frameType, lines }: NamedRuntimeFrame): Frame {
    const scripts = frameType === 'v8js' ? this.#scripts : undefined;
    const root = scripts ? this.#rootOf(pid) : 0;
    const hash = lines.reduce((sum, line) => Math.imul(sum, 31) + hashOf(line), 0) | 0;
    const first = this.#byContent.get(hash);
    for (let node = first; node; node = node.next) {
      const isSameKind = node.frame.frameType === frameType && node.root === root;
      if (isSameKind && areSameLines(node.lines, lines)) return node.frame;
    }
    const frame: Frame = {
      mapping: NO_MAPPING,
      address: 0,
      frameType,
      lines: lines.map(toFrameLine),
      generated: '',
      number: undefined,
      isChanged: true,
    };
    this.#byContent.set(hash, { frame, lines, root, next: first });
    scripts?.add(pid, frame);
    return frame;
  }
}

function hashOfWords(pid: Pid, halves: Uint32Array, at: number): number {
  const operand = halves[at]! ^ Math.imul(halves[at + 2]!, 31);
  return (pid ^ Math.imul(operand, 31) ^ Math.imul(halves[at + 3]!, 961)) | 0;
}

const hasWords = (node: IdentityNode, halves: Uint32Array, at: number): boolean =>
  node.operand === (halves[at]! | 0) &&
  node.head === (halves[at + 1]! | 0) &&
  node.low === (halves[at + 2]! | 0) &&
  node.high === (halves[at + 3]! | 0);

const isPlaced = ({ line }: { line: number }): boolean => line > 0;

const lacksLine = (frame: Frame): boolean => !frame.lines.every(isPlaced);

const isSameExecution = (a: ProcessIdentity, b: ProcessIdentity): boolean =>
  a.pid === b.pid && a.execId === b.execId && a.startBoottimeNs === b.startBoottimeNs;

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

function hashOf({ name, file, line, column }: RuntimeFrame): number {
  let hash = Math.imul(line, 961) + Math.imul(column, 31) + file.length;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash, 31) + name.charCodeAt(i);
  return hash | 0;
}

const areSameLines = (lines: readonly RuntimeFrame[], others: readonly RuntimeFrame[]): boolean =>
  lines.length === others.length &&
  lines.every((a, i) => {
    const b = others[i]!;
    const isSamePlace = a.line === b.line && a.column === b.column && a.startLine === b.startLine;
    return isSamePlace && a.name === b.name && a.file === b.file;
  });
