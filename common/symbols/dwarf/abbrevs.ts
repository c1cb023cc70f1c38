/** Abbreviation tables: what attributes the DIEs of a code have. DWARF 5, section 7.5.3. */
import type { Cursor } from '../../base/cursor.ts';
import * as D from './constants.ts';
import { type Encoding, formSize } from './forms.ts';

/** What a walk for functions does with a DIE. */
export const KIND_OTHER = 0;
export const KIND_SUBPROGRAM = 1;
export const KIND_INLINED = 2;
/** Its descendants hold no code, and it says where they end. */
export const KIND_JUMP = 3;
/** The same, but for one that is local to a function: a lambda's code stands in its class. */
export const KIND_CLASS = 4;

const MAX_ABBREVS = 1 << 16;
const MAX_ATTRIBUTES = 1 << 20;
const CLASSES = new Set([D.TAG_CLASS, D.TAG_STRUCTURE, D.TAG_UNION]);
const BARREN = new Set([D.TAG_ENUMERATION, D.TAG_SUBROUTINE_TYPE, D.TAG_CALL_SITE, D.TAG_GNU_CALL_SITE]);

export class AbbrevTable {
  /** By code; undefined while row i has the code i + 1, as all compilers number them. */
  #rows: Map<number, number> | undefined;
  readonly tags: number[] = [];
  readonly kinds: number[] = [];
  readonly hasChildren: boolean[] = [];
  /** Bytes of all attributes, -1 where that depends on their values. */
  readonly fixedSizes: number[] = [];
  /** Attributes of row i are [attributeStarts[i], attributeStarts[i + 1]). */
  readonly attributeStarts: number[] = [0];
  readonly names: number[] = [];
  readonly forms: number[] = [];
  /** By attribute: bytes of its value, -1 where that depends on the value. */
  readonly sizes: number[] = [];
  /** Value of FORM_IMPLICIT_CONST, else 0. */
  readonly implicit: number[] = [];

  /** Row of a code, -1 if there is none. */
  find(code: number): number {
    if (this.#rows) return this.#rows.get(code) ?? -1;
    return code > 0 && code <= this.tags.length ? code - 1 : -1;
  }

  get byteLength(): number {
    return this.tags.length * 96 + this.names.length * 32;
  }

  /** False at the end of the table. */
  readRow(cursor: Cursor, encoding: Encoding): number {
    const code = cursor.uleb();
    if (code === 0) return 0;
    const row = this.tags.length;
    if (row >= MAX_ABBREVS) throw new D.DwarfError(`more than ${MAX_ABBREVS} abbreviations`);
    if (code !== row + 1) this.#rows ??= new Map(this.tags.map((_, i) => [i + 1, i]));
    if (this.#rows && !this.#rows.has(code)) this.#rows.set(code, row);
    const tag = cursor.uleb();
    this.tags.push(tag);
    this.hasChildren.push(cursor.u8() !== 0);
    let [fixed, hasSibling] = [0, false];
    for (;;) {
      const name = cursor.uleb();
      const form = cursor.uleb();
      if (name === 0 && form === 0) break;
      if (this.names.length >= MAX_ATTRIBUTES)
        throw new D.DwarfError(`more than ${MAX_ATTRIBUTES} attributes`);
      this.names.push(name);
      this.forms.push(form);
      this.implicit.push(form === D.FORM_IMPLICIT_CONST ? cursor.sleb() : 0);
      const size = formSize(form, encoding);
      this.sizes.push(size);
      fixed = fixed < 0 || size < 0 ? -1 : fixed + size;
      if (name === D.AT_SIBLING) hasSibling = true;
    }
    this.fixedSizes.push(fixed);
    this.attributeStarts.push(this.names.length);
    this.kinds.push(kindOf(tag, hasSibling));
    return code;
  }
}

function kindOf(tag: number, hasSibling: boolean): number {
  if (tag === D.TAG_SUBPROGRAM) return KIND_SUBPROGRAM;
  if (tag === D.TAG_INLINED) return KIND_INLINED;
  if (hasSibling && CLASSES.has(tag)) return KIND_CLASS;
  return hasSibling && BARREN.has(tag) ? KIND_JUMP : KIND_OTHER;
}

/** Reads a table; up to the row of `onlyCode` where that is given. */
export function readAbbrevs(cursor: Cursor, encoding: Encoding, onlyCode = 0): AbbrevTable {
  const table = new AbbrevTable();
  for (;;) {
    const code = table.readRow(cursor, encoding);
    if (code === 0 || code === onlyCode) return table;
  }
}
