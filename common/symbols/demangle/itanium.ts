/**
 * Demangles C++ names of the Itanium ABI, which all compilers on Linux use:
 * <https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling>. Written as binutils' c++filt writes them.
 */
import { readExpression, readLiteral } from './itanium-expressions.ts';
import { skipDeclaration } from './itanium-heads.ts';
import { readEncoding, readName, readNestedName } from './itanium-names.ts';
import { type PrintOptions, printName } from './itanium-printer.ts';
import { type Grammar, Reader } from './itanium-reader.ts';
import { readType } from './itanium-types.ts';
import { NotDemangled } from './output.ts';

const GRAMMAR: Grammar = {
  // what something local returns would look like what is around it returns
  constantFunction: (reader) => readEncoding(reader, reader.peek() !== 'Z'),
  name: (reader) => readName(reader),
  nestedName: (reader) => readNestedName(reader),
  type: readType,
  expression: readExpression,
  literal: readLiteral,
  skipDeclaration,
};

/** Throws {@link NotDemangled}. */
export function demangleItanium(mangled: string, options: PrintOptions): string {
  const reader = new Reader(mangled, mangled.startsWith('__Z') ? 3 : 2, GRAMMAR);
  const name = readEncoding(reader, true);
  const clones = readClones(reader);
  if (!reader.atEnd) throw new NotDemangled('more behind the name');
  return printName(name, options) + clones;
}

/** `.cold`, `.part.0`, `.avx2`, `.constprop.0.isra.0`: copies and pieces of a function, each with its numbers. */
function readClones(reader: Reader): string {
  let clones = '';
  for (;;) {
    const match = /^\.[A-Za-z0-9_]+(?:\.\d+)*/.exec(reader.source.slice(reader.at));
    if (!match) return clones;
    clones += ` [clone ${match[0]}]`;
    reader.at += match[0].length;
  }
}
