/** The smallest parts of a mangled C++ name. */
import { type Node, text } from './itanium-nodes.ts';
import type { Reader } from './itanium-reader.ts';
import { NotDemangled } from './output.ts';

const QUALIFIERS: readonly [string, string][] = [
  ['r', ' restrict'],
  ['V', ' volatile'],
  ['K', ' const'],
];

export function readIdentifier(reader: Reader): string {
  const length = Number(reader.digits());
  const name = reader.source.slice(reader.at, reader.at + length);
  if (length === 0 || name.length < length) throw new NotDemangled('no identifier');
  reader.at += length;
  return name;
}

export function readSourceName(reader: Reader): Node {
  const name = readIdentifier(reader);
  return text(/^_GLOBAL_[._$]N/.test(name) ? '(anonymous namespace)' : name);
}

/** In the order of writing: the last code is the innermost. */
export function readQualifiers(reader: Reader): string {
  let qualifiers = '';
  for (const [code, spelling] of QUALIFIERS) if (reader.take(code)) qualifiers = spelling + qualifiers;
  return qualifiers;
}
