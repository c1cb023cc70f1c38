/**
 * Writes a C++ name as binutils' c++filt does. A declarator surrounds its name — `void (*f)(int)` — so each type
 * has a left part and a right part.
 */
import { endsInTemplate, type Node } from './itanium-nodes.ts';
import { Budget, Output } from './output.ts';

type Of<Kind extends Node['kind']> = Extract<Node, { kind: Kind }>;

export interface PrintOptions {
  /** Leave out parameters, results and template arguments. */
  short: boolean;
}

export function printName(node: Node, options: PrintOptions): string {
  const printer = new Printer(options);
  printer.print(node);
  return printer.text;
}

/** The part of a declarator behind its name. */
function hasRight({ kind }: Node): boolean {
  switch (kind) {
    case 'parameter':
    case 'qualified':
    case 'pointer':
    case 'array':
    case 'memberPointer':
    case 'function':
      return true;
    default:
      return false;
  }
}

class Printer {
  readonly #options: PrintOptions;
  readonly #out = new Output();
  readonly #budget = new Budget();
  /** Which item of its packs an expansion prints; -1 outside of one. */
  #packIndex = -1;
  /** Items of the packs seen in the expansion that is being printed; -1: none yet. */
  #packSize = -1;

  constructor(options: PrintOptions) {
    this.#options = options;
  }

  get text(): string {
    return this.#out.text;
  }

  print(node: Node): void {
    this.#left(node);
    this.#right(node);
  }

  #left(node: Node): void {
    if (node.kind === 'text') {
      this.#out.add(node.text);
      return;
    }
    this.#budget.enter();
    this.#printLeft(node);
    this.#budget.leave();
  }

  #printLeft(node: Node): void {
    switch (node.kind) {
      case 'nested':
        this.print(node.scope);
        this.#out.add('::');
        this.print(node.name);
        return;
      case 'template':
        this.#template(node);
        return;
      case 'pack':
      case 'list':
        this.#list(node.items);
        return;
      case 'parameter': {
        const item = this.#resolve(node);
        if (item) this.#left(item);
        return;
      }
      case 'expansion':
        this.#expand(node.child);
        return;
      case 'qualified':
        this.#qualified(node);
        return;
      case 'pointer':
        this.#pointer(node);
        return;
      case 'array':
        this.#left(node.child);
        return;
      default:
        this.#printOther(node);
        return;
    }
  }

  #printOther(node: Node): void {
    const out = this.#out;
    switch (node.kind) {
      case 'memberPointer':
        this.#left(node.child);
        out.add(this.#opensDeclarator(node.child) || ' ');
        this.print(node.scope);
        out.add('::*');
        return;
      case 'function':
        this.#left(node.result);
        if (!this.#isAddress(node.result)) out.add(' ');
        return;
      case 'encoding':
        this.#encoding(node);
        return;
      case 'constructor':
        out.add(node.destructor ? '~' : '');
        this.print(node.of);
        return;
      case 'tagged':
        this.print(node.child);
        out.add(`[abi:${node.tag}]`);
        return;
      case 'conversion':
        out.add('operator ');
        this.print(node.type);
        return;
      case 'lambda':
        out.add('{lambda');
        if (node.head.length > 0) this.#head(node.head);
        out.add('(');
        this.#list(node.parameters);
        out.add(`)#${node.number}}`);
        return;
      case 'count':
        out.add(String(node.items.reduce((sum, item) => sum + this.#countOf(item), 0)));
        return;
      case 'sequence':
        for (const part of node.parts) {
          if (typeof part === 'string') out.add(part);
          else this.print(part);
        }
        return;
    }
  }

  #right(node: Node): void {
    if (!hasRight(node)) return;
    this.#budget.enter();
    this.#printRight(node);
    this.#budget.leave();
  }

  #printRight(node: Node): void {
    const out = this.#out;
    switch (node.kind) {
      case 'parameter': {
        const item = this.#resolve(node);
        if (item) this.#right(item);
        return;
      }
      case 'qualified':
        this.#right(node.child);
        return;
      case 'pointer': {
        const { child } = this.#collapse(node);
        if (this.#opensDeclarator(child)) out.add(')');
        this.#right(child);
        return;
      }
      case 'array':
        out.add(out.last === ']' ? '[' : ' [');
        this.print(node.size);
        out.add(']');
        this.#right(node.child);
        return;
      case 'memberPointer':
        if (this.#opensDeclarator(node.child)) out.add(')');
        this.#right(node.child);
        return;
      case 'function':
        this.#parameters(node.parameters);
        out.add(node.suffix);
        this.#right(node.result);
        return;
    }
  }

  #template({ name, args }: Of<'template'>): void {
    this.print(name);
    if (this.#options.short) return;
    const out = this.#out;
    out.add(out.last === '<' ? ' <' : '<');
    this.#list(args);
    out.add(out.last === '>' ? ' >' : '>');
  }

  #encoding({ result, name, parameters, suffix }: Of<'encoding'>): void {
    if (this.#options.short) {
      this.print(name);
      return;
    }
    if (result) {
      this.#left(result);
      if (result.kind !== 'function' && !this.#isAddress(result)) this.#out.add(' ');
    }
    this.print(name);
    this.#parameters(parameters);
    this.#out.add(suffix);
    if (result) this.#right(result);
  }

  #parameters(parameters: readonly Node[]): void {
    this.#out.add('(');
    this.#list(parameters);
    this.#out.add(')');
  }

  /** With commas between those that print anything: an empty pack does not. */
  #list(items: readonly Node[]): void {
    const out = this.#out;
    let first = true;
    for (const item of items) {
      const before = out.pieces;
      if (!first) out.add(', ');
      const start = out.pieces;
      this.print(item);
      if (out.pieces === start) out.cut(before);
      else first = false;
    }
  }

  #qualified({ child, qualifiers }: Of<'qualified'>): void {
    this.#left(child);
    const inner = this.#resolve(child);
    // a parameter that is const already is not const twice
    if (inner?.kind === 'qualified' && inner.qualifiers === qualifiers) return;
    this.#out.add(qualifiers);
  }

  #pointer(node: Of<'pointer'>): void {
    const { child, sign } = this.#collapse(node);
    this.#left(child);
    this.#out.add(this.#opensDeclarator(child) + sign);
  }

  /** A reference to a reference is one reference, to an lvalue unless both are to rvalues. */
  #collapse(node: Of<'pointer'>): { child: Node; sign: string } {
    let { child, sign } = node;
    for (;;) {
      const inner = this.#resolve(child);
      if (sign === '*' || inner?.kind !== 'pointer' || inner.sign === '*') return { child, sign };
      if (inner.sign === '&') sign = '&';
      child = inner.child;
    }
  }

  /** What separates a type from its declarator: pointers to functions and arrays need a parenthesis. */
  #opensDeclarator(node: Node): string {
    let inner = this.#resolve(node);
    while (inner?.kind === 'qualified') inner = this.#resolve(inner.child);
    if (inner?.kind === 'function') return '(';
    return inner?.kind === 'array' ? ' (' : '';
  }

  /** Of a function or an array: what follows belongs to its parenthesis. */
  #isAddress(node: Node): boolean {
    const resolved = this.#resolve(node);
    if (resolved?.kind === 'memberPointer') return this.#opensDeclarator(resolved.child) !== '';
    return resolved?.kind === 'pointer' && this.#opensDeclarator(this.#collapse(resolved).child) !== '';
  }

  /** What a parameter stands for here; undefined for an item that its pack does not have. */
  #resolve(node: Node | undefined): Node | undefined {
    if (node?.kind !== 'parameter') return node;
    this.#budget.enter();
    const resolved = this.#argument(node);
    this.#budget.leave();
    return resolved;
  }

  #argument({ target }: Of<'parameter'>): Node | undefined {
    if (target?.kind !== 'pack') return this.#resolve(target);
    if (this.#packSize < 0) this.#packSize = target.items.length;
    return this.#packIndex < 0 ? target : this.#resolve(target.items[this.#packIndex]);
  }

  /** Items that it stands for. */
  #countOf(node: Node): number {
    const item = node.kind === 'expansion' ? node.child : node;
    const resolved = item.kind === 'parameter' ? item.target : item;
    return resolved?.kind === 'pack' ? resolved.items.length : 1;
  }

  #head(items: readonly Node[]): void {
    this.#out.add('<');
    this.#list(items);
    this.#out.add('>');
  }

  /** Of what is no pack here, such as `auto`. */
  #expandUnknown(child: Node, before: number): void {
    const isName = child.kind === 'text' || (child.kind === 'nested' && !endsInTemplate(child));
    if (!isName) this.#out.insert(before, '(');
    this.#out.add(isName ? '...' : ')...');
  }

  #expand(child: Node): void {
    const [index, size] = [this.#packIndex, this.#packSize];
    const before = this.#out.pieces;
    this.#packIndex = 0;
    this.#packSize = -1;
    this.print(child);
    const count: number = this.#packSize;
    if (count < 0) this.#expandUnknown(child, before);
    else if (count === 0) this.#out.cut(before);
    for (let i = 1; i < count; i++) {
      this.#packIndex = i;
      this.#out.add(', ');
      this.print(child);
    }
    [this.#packIndex, this.#packSize] = [index, size];
  }
}
