/** The parts of a C++ name, as the parser finds them and the printer writes them. */

export type Node =
  | { kind: 'text'; text: string }
  /** `scope::name`. */
  | { kind: 'nested'; scope: Node; name: Node }
  | { kind: 'template'; name: Node; args: readonly Node[] }
  /** An argument that stands for any number of arguments. */
  | { kind: 'pack'; items: readonly Node[] }
  /**
   * A template parameter and its argument. In `operator T<T>()` it is used before the argument is known. A pack
   * stands for one of its items inside an expansion.
   */
  | { kind: 'parameter'; index: number; target: Node | undefined }
  | { kind: 'expansion'; child: Node }
  | { kind: 'qualified'; child: Node; qualifiers: string }
  | { kind: 'pointer'; child: Node; sign: '*' | '&' | '&&' }
  | { kind: 'array'; child: Node; size: Node }
  | { kind: 'memberPointer'; scope: Node; child: Node }
  | { kind: 'function'; result: Node; parameters: readonly Node[]; suffix: string }
  /** A function with its parameters: what most symbols are. */
  | { kind: 'encoding'; result: Node | undefined; name: Node; parameters: readonly Node[]; suffix: string }
  | { kind: 'constructor'; of: Node; destructor: boolean }
  | { kind: 'tagged'; child: Node; tag: string }
  | { kind: 'conversion'; type: Node }
  /** `head`: the template parameters that it declares itself. */
  | { kind: 'lambda'; head: readonly Node[]; parameters: readonly Node[]; number: number }
  /** Text around other nodes: expressions, thunks, literals. */
  | { kind: 'sequence'; parts: readonly (string | Node)[] }
  /** How many there are, those of packs counted. */
  | { kind: 'count'; items: readonly Node[] }
  /** Items with commas between them. */
  | { kind: 'list'; items: readonly Node[] };

export const text = (value: string): Node => ({ kind: 'text', text: value });
export const sequence = (...parts: (string | Node)[]): Node => ({ kind: 'sequence', parts });

/** The last component of a name without template arguments: what a constructor is called. */
export function baseName(node: Node): Node {
  switch (node.kind) {
    case 'nested':
      return baseName(node.name);
    case 'template':
      return baseName(node.name);
    case 'tagged':
      return baseName(node.child);
    default:
      return node;
  }
}

/** Whether the name ends in template arguments: then a function says its result's type. */
export function endsInTemplate(node: Node): boolean {
  if (node.kind === 'nested') return endsInTemplate(node.name);
  return node.kind === 'template';
}

/** Constructors, destructors and conversions say no result's type. */
export function namesItsResult(node: Node): boolean {
  switch (node.kind) {
    case 'nested':
      return namesItsResult(node.name);
    case 'template':
      return namesItsResult(node.name);
    case 'tagged':
      return namesItsResult(node.child);
    default:
      return node.kind === 'constructor' || node.kind === 'conversion';
  }
}
