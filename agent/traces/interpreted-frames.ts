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
interface FrameIdentity extends ProcessIdentity {
  /** Upper half of the first word: kind and operand. */
  head: number;
  operandLow: number;
  low: number;
  high: number;
}

interface IdentityNode extends FrameIdentity {
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

  /** `name` is called for what was not met before, and a few times again where it does not know the line. */
  of(identity: FrameIdentity, name: () => NamedRuntimeFrame): Frame {
    const { pid, head, operandLow, low, high } = identity;
    const hash = (pid ^ Math.imul(operandLow ^ Math.imul(low, 31), 31) ^ Math.imul(high, 961)) | 0;
    const first = this.#byIdentity.get(hash);
    for (let node = first; node; node = node.next) {
      const isSameOperand = node.head === head && node.operandLow === operandLow;
      if (isSameOperand && node.low === low && node.high === high && isSameExecution(node, identity))
        return node.triesLeft > 0 ? this.#tryAgain(node, name) : node.frame;
    }
    const frame = this.#intern(pid, name());
    const { execId, startBoottimeNs } = identity;
    const triesLeft = lacksLine(frame) ? TRIES : 0;
    const node = { pid, execId, startBoottimeNs, head, operandLow, low, high, frame, triesLeft, next: first };
    this.#byIdentity.set(hash, node);
    return frame;
  }

  /** The frame stays as it is where no more is known now. */
  #tryAgain(node: IdentityNode, name: () => NamedRuntimeFrame): Frame {
    const named = name();
    node.triesLeft--;
    if (!named.lines.every(isPlaced)) return node.frame;
    node.triesLeft = 0;
    node.frame = this.#intern(node.pid, named);
    return node.frame;
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
