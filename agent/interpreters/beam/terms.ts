/** Atoms, and texts that are lists of characters. erl_term.h: the lower bits of a term say what it is. */

import { CannotRead, type RuntimeMemory, wordAt } from '../runtime-memory.ts';
import { ATOM, ATOMS, type BeamLayout } from './layout.ts';

export interface AtomPlace {
  /** Address of the table of atoms. */
  atoms: number;
  layout: BeamLayout;
}

const ATOM_BITS = 6;
const ATOM_TAG = 0x0b;
const SEGMENT_BITS = 10;
const MAX_ATOMS = 2 ** 30;
/** As many characters as an atom may have, of up to 4 bytes. */
const MAX_NAME_BYTES = 255 * 4;
const NIL = 0x3b;
const IS_LIST = 1;
const IS_BOXED = 2;
const SMALL_TAG = 0x0f;
const HEADER_BYTES = 8;
/** ErlHeapBits: header, size in bits, bytes. */
const BITS_AT = 16;
const MAX_TEXT = 1024;

/** Its name. Throws CannotRead. */
export function readAtom(memory: RuntimeMemory, { atoms, layout }: AtomPlace, index: number): string {
  if (!(index >= 0 && index < MAX_ATOMS)) throw new CannotRead('malformed');
  const segments = memory.word(atoms + ATOMS.segments);
  const segment = memory.word(segments + Math.floor(index / 2 ** SEGMENT_BITS) * 8);
  const atom = memory.view(memory.word(segment + (index % 2 ** SEGMENT_BITS) * 8), ATOM.bytes);
  const length = atom.getInt16(ATOM.length, true);
  if (length < 0 || length > MAX_NAME_BYTES) throw new CannotRead('malformed');
  const name = wordAt(atom, ATOM.name);
  if (length === 0) return '';
  const at = layout.hasNameTerms ? name - (name % 4) + BITS_AT : name;
  if (layout.hasNameTerms && name % 4 !== IS_BOXED) throw new CannotRead('malformed');
  const view = memory.view(at, length);
  return Buffer.from(view.buffer, view.byteOffset, length).toString('utf8');
}

/** Undefined where the term is not an atom. */
export function atomIndex(term: number): number | undefined {
  return term % 2 ** ATOM_BITS === ATOM_TAG ? Math.floor(term / 2 ** ATOM_BITS) : undefined;
}

/** The text of a list of characters, cut where it is too long. Throws CannotRead. */
export function readText(memory: RuntimeMemory, list: number): string {
  let text = '';
  for (let term = list; term !== NIL && text.length < MAX_TEXT; ) {
    if (term % 4 !== IS_LIST) throw new CannotRead('malformed');
    const cell = memory.view(term - IS_LIST, 2 * HEADER_BYTES);
    const character = wordAt(cell, 0);
    if (character % 16 !== SMALL_TAG || character / 16 > 0x10ffff) throw new CannotRead('malformed');
    text += String.fromCodePoint(Math.floor(character / 16));
    term = wordAt(cell, 8);
  }
  return text;
}
