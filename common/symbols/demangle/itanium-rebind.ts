/**
 * What was named before and is referred to from another place: a template parameter in it means the argument of the
 * template around that place, or of the lambda, as if it were written there again.
 */
import { type Node, text } from './itanium-nodes.ts';
import type { Reader } from './itanium-reader.ts';

/** What a template parameter stands for here; undefined where that is not known, or not yet. */
export function meaningOf({ lambda, templateArgs }: Reader, index: number): Node | undefined {
  return lambda ? (lambda[index] ?? text(`auto:${index + 1}`)) : templateArgs[index];
}

/** Most of a name is read at one such place. */
const rebinders = new WeakMap<Reader, Rebinder>();

export function rebind(reader: Reader, node: Node): Node {
  let rebinder = rebinders.get(reader);
  if (!rebinder?.isOfThisPlace()) {
    rebinder = new Rebinder(reader);
    rebinders.set(reader, rebinder);
  }
  return rebinder.bind(node);
}

class Rebinder {
  readonly #reader: Reader;
  readonly #place: unknown[];
  readonly #bound = new Map<Node, Node>();
  /** Met since it was set to false. */
  #hasParameter = false;

  constructor(reader: Reader) {
    this.#reader = reader;
    this.#place = placeOf(reader);
  }

  /** Parameters mean what they did when it was made. */
  isOfThisPlace(): boolean {
    return placeOf(this.#reader).every((part, i) => part === this.#place[i]);
  }

  readonly bind = (node: Node): Node => {
    const { plain, budget } = this.#reader;
    if (node.kind === 'text' || plain.has(node)) return node;
    const known = this.#bound.get(node);
    if (known) {
      this.#hasParameter = true;
      return known;
    }
    const before = this.#hasParameter;
    this.#hasParameter = false;
    budget.enter();
    const bound = this.#bindChildren(node);
    budget.leave();
    if (this.#hasParameter) this.#bound.set(node, bound);
    else plain.add(node);
    this.#hasParameter ||= before;
    return bound;
  };

  readonly #bindAll = <T extends string | Node>(nodes: readonly T[]): readonly T[] => {
    const bound = nodes.map((node) => (typeof node === 'string' ? node : (this.bind(node) as T)));
    return bound.some((node, i) => node !== nodes[i]) ? bound : nodes;
  };

  /** The same node where nothing in it changes. What a function or a lambda names in its signature is its own. */
  #bindChildren(node: Node): Node {
    switch (node.kind) {
      case 'parameter':
        return this.#parameter(node);
      case 'nested':
        return changed(node, { scope: this.bind(node.scope), name: this.bind(node.name) });
      case 'template':
        return changed(node, { name: this.bind(node.name), args: this.#bindAll(node.args) });
      case 'pack':
      case 'list':
      case 'count':
        return changed(node, { items: this.#bindAll(node.items) });
      case 'expansion':
      case 'qualified':
      case 'pointer':
      case 'tagged':
        return changed(node, { child: this.bind(node.child) });
      case 'array':
        return changed(node, { child: this.bind(node.child), size: this.bind(node.size) });
      case 'memberPointer':
        return changed(node, { scope: this.bind(node.scope), child: this.bind(node.child) });
      case 'function':
        return changed(node, { result: this.bind(node.result), parameters: this.#bindAll(node.parameters) });
      case 'constructor':
        return changed(node, { of: this.bind(node.of) });
      case 'conversion':
        return changed(node, { type: this.bind(node.type) });
      case 'sequence':
        return changed(node, { parts: this.#bindAll(node.parts) });
      case 'text':
      case 'encoding':
      case 'lambda':
        return node;
    }
  }

  /** One whose argument comes later stays, so that it gets that. */
  #parameter(node: Extract<Node, { kind: 'parameter' }>): Node {
    this.#hasParameter = true;
    const target = node.target && meaningOf(this.#reader, node.index);
    return target && target !== node.target ? { ...node, target } : node;
  }
}

const placeOf = ({ templateArgs, lambda }: Reader): unknown[] => [
  ...[templateArgs, templateArgs.length, lambda, lambda?.length],
];

function changed<T extends Node>(node: T, parts: Partial<T>): T {
  const isSame = Object.entries(parts).every(([key, part]) => part === node[key as keyof T]);
  return isSame ? node : { ...node, ...parts };
}
