/**
 * Perl keeps no line of where a function begins. That of its first statement is found from any other: operations are a tree
 * (op.h: of siblings the last one leads to its parent), whose root is the function, and its first statement the first leaf.
 */
import { OP, OP_FLAG } from './layout.ts';
import { type PerlObjects, wordAt } from './objects.ts';

/** Siblings and parents on the way up. */
const MAX_STEPS = 4096;
const MAX_DEPTH = 16;

/** Line of the first statement of the function that a statement belongs to; 0 where it is not found. */
export function firstLine(objects: PerlObjects, statement: number): number {
  const own = objects.view(statement, OP.bytes);
  if (!own) return 0;
  const kind = kindOf(own);
  let at = rootOf(objects, statement);
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const view = objects.view(at, OP.bytes);
    if (!view) return 0;
    if (kindOf(view) === kind) return view.getUint32(OP.line, true);
    if (!(view.getUint8(OP.flags) & OP_FLAG.kids)) return 0;
    at = wordAt(view, OP.first);
  }
  return 0;
}

/** Which function executes it, and its number. */
const kindOf = (view: DataView): string =>
  `${wordAt(view, OP.function)} ${view.getUint16(OP.type, true) & OP_FLAG.typeMask}`;

function rootOf(objects: PerlObjects, statement: number): number {
  let at = statement;
  for (let step = 0; step < MAX_STEPS; step++) {
    const view = objects.view(at, OP.bytes);
    if (!view) return 0;
    const next = wordAt(view, OP.sibling);
    if (next === 0) return at;
    at = next;
  }
  return 0;
}
