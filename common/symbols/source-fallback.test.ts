import { describe, expect, it } from 'vitest';
import type { SymbolFrame, SymbolSource } from './source.ts';
import { sourceWithFallback } from './source-fallback.ts';

const frame = (name: string, inlined = false): SymbolFrame => ({
  ...{ function: name, systemName: name.startsWith('_') ? name : '', file: '', line: 0, column: 0, inlined },
});
const source = (...frames: SymbolFrame[]): SymbolSource => ({
  lookup: () => frames.map((one) => ({ ...one })),
  byteLength: 0,
});
const namesOf = (...sources: SymbolSource[]): string[][] =>
  sourceWithFallback(sources)
    .lookup(1)
    .map(({ function: name, systemName }) => [name, systemName]);

describe('symbol sources with a fallback', () => {
  it('takes from the symbol table what DWARF lacks of the outermost function, and only of that', () => {
    expect(namesOf(source(frame('in', true), frame('out')), source(frame('_Z3outi')))).toEqual([
      ['in', 'in'],
      ['out(int)', '_Z3outi'],
    ]);
  });

  it("takes the symbol's name of a constructor of which gcc's DWARF knows what its copies share", () => {
    const dwarf = source(frame('_ZN4LeafC4Ei', true), frame('_ZN4LeafD4Ev'));
    expect(namesOf(dwarf, source(frame('_ZN4LeafD0Ev')))).toEqual([
      ['Leaf::Leaf(int)', '_ZN4LeafC4Ei'],
      ['Leaf::~Leaf()', '_ZN4LeafD0Ev'],
    ]);
  });

  it('knows frames without a name, and names that come again', () => {
    const chain = source(frame('', true), frame('_Z3outi'));
    for (let i = 0; i < 2; i++)
      expect(namesOf(chain)).toEqual([
        ['', ''],
        ['out(int)', '_Z3outi'],
      ]);
  });

  it('keeps the shared name where the symbol there is another function', () => {
    const dwarf = source(frame('_ZN4LeafD4Ev'));
    for (const other of ['_ZN4RootD0Ev', '_ZN4LeafC1Ev', '_Z4leafv'])
      expect(namesOf(dwarf, source(frame(other)))).toEqual([['Leaf::~Leaf()', '_ZN4LeafD4Ev']]);
  });
});
