/**
 * What a DIE stands in. Compilers give functions that other files can't call no mangled name, and gcc gives those none that
 * it inlines: what is left is `run`, or `operator()` for each lambda of a program.
 */
import { Cursor } from '../../base/cursor.ts';
import type { AbbrevTable } from './abbrevs.ts';
import * as D from './constants.ts';
import { readSized, readUnsized } from './forms.ts';
import { localReference } from './functions.ts';
import type { Unit } from './unit.ts';

/** It is gone through for each such name, and stays in memory meanwhile. */
const MAX_UNIT_BYTES = 8 << 20;
const MAX_DEPTH = 256;
const CPP = new Set([D.LANG_CPP, D.LANG_CPP_03, D.LANG_CPP_11, D.LANG_CPP_14, D.LANG_CPP_17, D.LANG_CPP_20]);

export const isCpp = ({ language }: Unit): boolean => CPP.has(language);

/** A DIE around another one. */
export interface Scope {
  die: number;
  tag: number;
}

/** Outermost first, without the unit's own; none where the unit is too large, or has no such DIE. Throws OutOfBounds. */
export function findScopes(unit: Unit, abbrevs: AbbrevTable, die: number): Scope[] {
  const { firstDie, end, section } = unit;
  const bytes = Math.min(end, section.size) - firstDie;
  if (bytes > MAX_UNIT_BYTES) return [];
  const cursor = new Cursor(section.bytes(firstDie, bytes));
  const open: Scope[] = [];
  while (cursor.left > 0) {
    const at = firstDie + cursor.at;
    if (at >= die) return at === die ? open.slice(1) : [];
    const code = cursor.uleb();
    if (code === 0) {
      open.pop();
      if (open.length === 0) return [];
      continue;
    }
    const row = abbrevs.find(code);
    if (row < 0) return [];
    const sibling = readSibling(cursor, abbrevs, row, unit);
    if (!abbrevs.hasChildren[row]) continue;
    // past all that is in it
    if (sibling > at && sibling <= die) cursor.at = sibling - firstDie;
    else if (open.push({ die: at, tag: abbrevs.tags[row]! }) > MAX_DEPTH) return [];
  }
  return [];
}

/** Of a DIE that the cursor then stands behind; -1 where it does not say where the next one begins. */
function readSibling(cursor: Cursor, abbrevs: AbbrevTable, row: number, unit: Unit): number {
  const { attributeStarts, names, forms, sizes } = abbrevs;
  let sibling = -1;
  for (let i = attributeStarts[row]!; i < attributeStarts[row + 1]!; i++) {
    const [form, size] = [forms[i]!, sizes[i]!];
    const value = size >= 0 ? readSized(cursor, size) : readUnsized(cursor, form, unit);
    if (names[i] === D.AT_SIBLING) sibling = localReference(form, value, unit);
  }
  return sibling;
}
