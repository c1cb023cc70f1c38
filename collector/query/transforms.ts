/** Stacks as a reader wants to see them: each transform makes a new tree, and no event is counted twice. */
import { toPattern } from '../../common/profile/filters/filter.ts';
import { readIdleMode } from '../../common/profile/filters/idle-pools.ts';
import { ALL_RUNTIMES, isMine, readRuntimes } from '../../common/profile/filters/my-code.ts';
import type { Transform } from '../../common/profile/filters/transform-list.ts';
import type { Frame, StackCounts, Stacks } from '../store/store.ts';
import { FrameTable } from '../store/trees/frame-table.ts';
import { StackTree } from '../store/trees/stack-tree.ts';
import { findIdleNodes } from './idle-nodes.ts';

export interface Transformed {
  stacks: Stacks;
  /** New node of each old one; -1: its events are left out. */
  nodes: Int32Array;
}

/** The stacks with the transforms applied from left to right. */
export function transformStacks(stacks: Stacks, transforms: readonly Transform[]): Transformed {
  let done: Transformed = { stacks, nodes: Int32Array.from(stacks.parents, (_, node) => node) };
  for (const transform of transforms) {
    const rule = ruleOf(transform, done.stacks);
    const next = new Pass(done.stacks, rule.kind !== 'merge').run(rule);
    done = { stacks: next.stacks, nodes: done.nodes.map((node) => (node < 0 ? -1 : next.nodes[node]!)) };
  }
  return done;
}

export function transformParts(
  parts: readonly StackCounts[],
  transforms: readonly Transform[],
): readonly StackCounts[] {
  if (transforms.length === 0) return parts;
  return parts.map((part) => {
    const { stacks, nodes } = transformStacks(part, transforms);
    const selfCounts = new Float64Array(stacks.parents.length);
    for (const [node, count] of part.selfCounts.entries()) {
      if (nodes[node]! >= 0) selfCounts[nodes[node]!]! += count;
    }
    return { ...stacks, selfCounts };
  });
}

/** What becomes of a frame below its caller, given as it already is in the new tree. */
type Rule =
  | { kind: 'focus'; isFocus(frame: number): boolean }
  | { kind: 'hide'; isHidden(frame: number): boolean }
  | { kind: 'collapse'; isLast(frame: number): boolean }
  /** What stands for each node's pool; missing where it has none. */
  | { kind: 'idle'; pools: readonly (Frame | undefined)[]; isHidden: boolean }
  /** Neighbours that get the same replacement become one. */
  | { kind: 'merge'; replace(frame: number): Frame | undefined };

function ruleOf({ name, operator, values }: Transform, stacks: Stacks): Rule {
  const { frames } = stacks;
  const test = tester(operator, values);
  const byName = memo(frames, (frame) => test(frame.name));
  switch (name) {
    case 'focus':
      return { kind: 'focus', isFocus: byName };
    case 'hide':
      return { kind: 'hide', isHidden: byName };
    case 'idle':
      return { kind: 'idle', pools: findIdleNodes(stacks), isHidden: readIdleMode(values) === 'hide' };
    case 'only': {
      const runtimes = readRuntimes(values) ?? ALL_RUNTIMES;
      return { kind: 'hide', isHidden: memo(frames, (frame) => !isMine(frame, runtimes)) };
    }
    case 'collapse':
      return { kind: 'collapse', isLast: byName };
    case 'recursion': {
      const isAll = operator === '=' && values.includes('all');
      return { kind: 'merge', replace: (id) => (isAll || byName(id) ? frames[id] : undefined) };
    }
    case 'library': {
      const isIn = memo(
        frames,
        ({ mapping }) => mapping !== '' && (test(mapping) || test(fileName(mapping))),
      );
      return { kind: 'merge', replace: (id) => (isIn(id) ? wholeLibrary(frames[id]!) : undefined) };
    }
    case 'kind': {
      const isOf = memo(frames, ({ kind }) => test(kind));
      return { kind: 'merge', replace: (id) => (isOf(id) ? wholeKind(frames[id]!) : undefined) };
    }
  }
}

const fileName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
const wholeLibrary = ({ mapping, kind }: Frame): Frame => ({
  name: `[${fileName(mapping)}]`,
  file: '',
  mapping,
  kind,
});
const wholeKind = ({ kind }: Frame): Frame => ({ name: `[${kind}]`, file: '', mapping: '', kind });

function tester(operator: Transform['operator'], values: readonly string[]): (text: string) => boolean {
  if (operator === '=') return (text) => values.includes(text);
  const patterns = values.map(toPattern);
  return (text) => patterns.some((pattern) => pattern.test(text));
}

/** Answers per frame, each found out once; a process is not a frame. */
function memo(frames: readonly Frame[], test: (frame: Frame) => boolean): (id: number) => boolean {
  const known = new Int8Array(frames.length).fill(-1);
  return (id) => {
    if (known[id] === -1) known[id] = frames[id]!.kind !== 'process' && test(frames[id]!) ? 1 : 0;
    return known[id] === 1;
  };
}

/** One transform over one tree; parents come before children, so one sweep does it. */
class Pass {
  readonly #old: Stacks;
  readonly #table: FrameTable;
  readonly #tree = new StackTree();
  readonly #frameIds: Int32Array;
  readonly #nodes: Int32Array;
  /** Per old node: below a focused function, or at or below one that was collapsed. */
  readonly #marked: Uint8Array;

  /** Neighbours that become one are told by their functions, whatever their lines. */
  constructor(old: Stacks, keepsLines: boolean) {
    this.#table = new FrameTable({ keepsLines });
    this.#old = old;
    this.#frameIds = new Int32Array(old.frames.length).fill(-1);
    this.#nodes = new Int32Array(old.parents.length);
    this.#marked = new Uint8Array(old.parents.length);
  }

  run(rule: Rule): Transformed {
    const { parents, nodeFrames } = this.#old;
    // The root's own events are in no stack.
    if (rule.kind === 'focus') this.#nodes[0] = -1;
    for (let node = 1; node < parents.length; node++) {
      const parent = parents[node]!;
      this.#nodes[node] =
        parent === 0 && rule.kind !== 'focus'
          ? this.#child(0, nodeFrames[node]!)
          : this.#place(rule, node, parent, nodeFrames[node]!);
    }
    const { parents: newParents, frames, size } = this.#tree;
    const stacks = {
      frames: this.#table.frames,
      parents: newParents.subarray(0, size),
      nodeFrames: frames.subarray(0, size),
    };
    return { stacks, nodes: this.#nodes };
  }

  #place(rule: Rule, node: number, parent: number, frame: number): number {
    const above = this.#nodes[parent]!;
    switch (rule.kind) {
      case 'focus':
        return this.#focus(rule, node, parent, frame);
      case 'hide':
        return rule.isHidden(frame) ? above : this.#child(above, frame);
      case 'collapse':
        if (this.#marked[parent] === 1) {
          this.#marked[node] = 1;
          return above;
        }
        this.#marked[node] = rule.isLast(frame) ? 1 : 0;
        return this.#child(above, frame);
      case 'idle': {
        const pool = rule.pools[node];
        if (pool === undefined) return this.#child(above, frame);
        if (rule.isHidden) return -1;
        return this.#tree.child(this.#child(0, this.#processFrame(node)), this.#table.intern(pool));
      }
      case 'merge': {
        const replacement = rule.replace(frame);
        if (replacement === undefined) return this.#child(above, frame);
        const id = this.#table.intern(replacement);
        return this.#tree.frames[above] === id && above !== 0 ? above : this.#tree.child(above, id);
      }
    }
  }

  /** Below the process comes the outermost call of the function. */
  #focus(rule: Extract<Rule, { kind: 'focus' }>, node: number, parent: number, frame: number): number {
    if (this.#marked[parent] === 1) {
      this.#marked[node] = 1;
      return this.#child(this.#nodes[parent]!, frame);
    }
    if (!rule.isFocus(frame)) return -1;
    this.#marked[node] = 1;
    return this.#child(this.#child(0, this.#processFrame(node)), frame);
  }

  #processFrame(node: number): number {
    const { parents, nodeFrames } = this.#old;
    let at = node;
    while (parents[at] !== 0) at = parents[at]!;
    return nodeFrames[at]!;
  }

  #child(parent: number, frame: number): number {
    if (this.#frameIds[frame] === -1) this.#frameIds[frame] = this.#table.intern(this.#old.frames[frame]!);
    return this.#tree.child(parent, this.#frameIds[frame]!);
  }
}
