/** The stacks of a profile as an indented tree of text, cut to what matters. */
import { printable } from '../../base/printable.ts';
import type { Profile } from '../model/profile.ts';
import { CallTree, type NodeValues } from './call-tree.ts';
import {
  asCall,
  columns,
  counted,
  DEFAULT_MIN_SHARE,
  groupDigits,
  headLine,
  type ReportCut,
  share,
} from './report-text.ts';

/** Deeper, the level is a number and no indent: text grows with the square of the depth otherwise. */
const MAX_INDENT = 40;

interface Line {
  /** The outermost node of a chain of calls of one function, and the innermost. */
  node: number;
  last: number;
  /** How many calls the chain has. */
  repeats: number;
  depth: number;
}

export const formatTree = (profile: Profile, cut: ReportCut = {}): Iterable<string> =>
  new TreeText(profile, cut).lines();

class TreeText {
  readonly #tree = new CallTree(asCall);
  readonly #values: NodeValues;
  readonly #children = new Map<number, number[]>();
  readonly #head: string;
  readonly #least: number;

  constructor(
    profile: Profile,
    { top = Number.POSITIVE_INFINITY, minShare = DEFAULT_MIN_SHARE, fileTotal }: ReportCut,
  ) {
    this.#values = this.#tree.add(profile);
    const { total, sum } = this.#values;
    const stackCount = new Set(profile.samples.map(({ stack }) => stack)).size;
    this.#head = headLine(profile.type, sum, counted(stackCount, 'stack'), fileTotal);
    // as many as asked for: the smallest of them says how large a line has to be
    const sorted = Number.isFinite(top) ? total.slice(1).sort().reverse() : total;
    this.#least = Math.max(minShare * sum, Number.isFinite(top) ? (sorted[top - 1] ?? 0) : 0);
    for (let node = 1; node < total.length; node++) {
      // of another type of the file, or not selected
      if (total[node] === 0) continue;
      const caller = this.#tree.callerOf(node);
      const known = this.#children.get(caller);
      if (known) known.push(node);
      else this.#children.set(caller, [node]);
    }
  }

  *lines(): Generator<string> {
    const { sum, self } = this.#values;
    yield this.#head;
    yield columns('self', 'total', 'stack');
    if (self[0]! > 0) yield columns(share(self[0]!, sum), share(self[0]!, sum), '[no frames]');
    const waiting: (Line | string)[] = this.#below(0, 0);
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (typeof next === 'string') yield next;
      else {
        yield this.#line(next);
        for (const line of this.#below(next.last, next.depth + next.repeats)) waiting.push(line);
      }
    }
  }

  /** What a node calls, the largest last, before it what is too small. */
  #below(node: number, depth: number): (Line | string)[] {
    const { total, sum } = this.#values;
    const children = this.#children.get(node) ?? [];
    const shown = children.filter((child) => total[child]! >= this.#least);
    const lines = shown
      .sort((a, b) => total[a]! - total[b]! || b - a)
      .map((child) => this.#chain(child, depth));
    const rest = children.length - shown.length;
    if (rest === 0) return lines;
    const left =
      children.reduce((all, child) => all + total[child]!, 0) -
      shown.reduce((all, child) => all + total[child]!, 0);
    return [
      columns('', share(left, sum), `${indentOf(depth)}… ${groupDigits(rest)} more, ${share(left, sum)}`),
      ...lines,
    ];
  }

  /** A function that does nothing but call itself is one line. */
  #chain(node: number, depth: number): Line {
    const { self } = this.#values;
    let last = node;
    let repeats = 1;
    for (;;) {
      const children = this.#children.get(last) ?? [];
      if (self[last] !== 0 || children.length !== 1) break;
      if (this.#tree.nameOf(children[0]!) !== this.#tree.nameOf(node)) break;
      last = children[0]!;
      repeats++;
    }
    return { node, last, repeats, depth };
  }

  #line({ node, last, repeats, depth }: Line): string {
    const { self, total, sum } = this.#values;
    const name = printable(this.#tree.nameOf(node));
    const times = repeats === 1 ? '' : `  × ${groupDigits(repeats)}`;
    return columns(share(self[last]!, sum), share(total[node]!, sum), indentOf(depth) + name + times);
  }
}

const indentOf = (depth: number): string =>
  depth <= MAX_INDENT ? ' '.repeat(depth) : `${' '.repeat(MAX_INDENT)}(level ${depth}) `;
