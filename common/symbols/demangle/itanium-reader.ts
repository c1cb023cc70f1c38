/** Characters of a mangled C++ name, and what was seen of it so far. */
import type { Node } from './itanium-nodes.ts';
import { Budget, NotDemangled } from './output.ts';

const MAX_SUBSTITUTIONS = 4096;

/** The grammar is recursive: what its lower parts call of its upper ones. */
export interface Grammar {
  /** A function, or a variable, as an argument of a template. */
  constantFunction(reader: Reader): Node;
  name(reader: Reader): Node;
  nestedName(reader: Reader): Node;
  type(reader: Reader): Node;
  expression(reader: Reader): Node;
  literal(reader: Reader): Node;
  /** Reads past what an argument of a template says of its parameter; false where it says nothing. */
  skipDeclaration(reader: Reader): boolean;
}

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

/** 0-9 and A-Z; NaN for what is not a digit. */
function digitOf(code: number): number {
  if (isDigit(code)) return code - 0x30;
  return code >= 0x41 && code <= 0x5a ? code - 0x41 + 10 : Number.NaN;
}

export class Reader {
  readonly grammar: Grammar;
  readonly source: string;
  at = 0;
  readonly budget = new Budget();
  readonly substitutions: Node[] = [];
  /** Arguments of the innermost template whose parameters can be named here. */
  templateArgs: Node[] = [];
  /** Parameters used before their arguments are known. */
  forwards: Extract<Node, { kind: 'parameter' }>[] = [];
  /** In a conversion operator's type: its parameters come before their arguments. */
  isConversion = false;
  /** The same, and not in arguments of it: those that follow are the operator's. */
  isOpenConversion = false;
  /** In the signature of a lambda: the template parameters that it names itself; those behind them are `auto`. */
  lambda: readonly Node[] | undefined;
  /** What is read is not written: parameters need not be known. */
  isConstraint = false;
  /** Nodes that name no template parameter. */
  readonly plain = new WeakSet<Node>();

  constructor(source: string, at: number, grammar: Grammar) {
    this.grammar = grammar;
    this.source = source;
    this.at = at;
  }

  peek(offset = 0): string {
    return this.source[this.at + offset] ?? '';
  }

  take(expected: string): boolean {
    if (!this.source.startsWith(expected, this.at)) return false;
    this.at += expected.length;
    return true;
  }

  expect(expected: string): void {
    if (!this.take(expected)) throw new NotDemangled(`no ${expected}`);
  }

  get atEnd(): boolean {
    return this.at >= this.source.length;
  }

  /** Digits, possibly none. */
  digits(): string {
    const start = this.at;
    while (isDigit(this.source.charCodeAt(this.at))) this.at++;
    return this.source.slice(start, this.at);
  }

  /** `n` stands for a minus. */
  number(): string {
    const sign = this.take('n') ? '-' : '';
    return sign + this.digits();
  }

  /** `_` is 0, `0_` is 1, and so on. */
  index(radix = 10): number {
    if (this.take('_')) return 0;
    const start = this.at;
    let value = 0;
    for (;;) {
      const digit = digitOf(this.source.charCodeAt(this.at));
      if (!(digit < radix)) break;
      // numbers have no zeros in front
      if (value === 0 && this.at > start) throw new NotDemangled('no index');
      value = value * radix + digit;
      this.at++;
    }
    if (this.at === start || !Number.isSafeInteger(value)) throw new NotDemangled('no index');
    this.expect('_');
    return value + 1;
  }

  substitute<T extends Node>(node: T): T {
    if (this.substitutions.length >= MAX_SUBSTITUTIONS) throw new NotDemangled('too many substitutions');
    this.substitutions.push(node);
    return node;
  }

  /** Each until an `E`. */
  untilEnd(read: () => Node): Node[] {
    const items: Node[] = [];
    while (!this.take('E')) items.push(read());
    return items;
  }
}
