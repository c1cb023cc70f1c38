import { describe, expect, it } from 'vitest';
import { describeImport, describeSymbols } from './send-file.ts';

const IMPORTED = { fileName: 'a.pb.gz', samples: 3, rejected: [], fromMs: 1, toMs: 9, repeated: false };
const SYMBOLS = {
  fileName: 'a.debug',
  fileId: '',
  gnuBuildId: '',
  sources: ['DWARF', 'symtab'],
  nameless: 4,
  named: 3,
};

describe('what is told of a file', () => {
  it.each([
    [{}, '3 samples imported', false],
    [{ samples: 0, repeated: true }, 'imported before, nothing added', false],
    [
      { samples: 0, rejected: [{ reason: 'too old', count: 2 }] },
      'nothing of it is stored; 2 samples left out: too old',
      true,
    ],
  ])('says how many samples of a profile are stored: %j', (change, text, isBad) => {
    const outcome = describeImport({ ...IMPORTED, ...change });
    expect(outcome).toMatchObject({ text, isBad });
    expect(outcome.span).toEqual(isBad ? undefined : { fromMs: 1, toMs: 9 });
  });

  it.each([
    [{}, 'names from DWARF and symtab are kept; 3 of 4 nameless addresses named', false],
    [{ named: 0 }, 'names from DWARF and symtab are kept; 0 of 4 nameless addresses named', true],
    [
      { nameless: 0, named: 0 },
      'names from DWARF and symtab are kept; no stored stack needs them: samples that arrive without names will',
      false,
    ],
  ])('says what a program names: %j', (change, text, isBad) => {
    expect(describeSymbols({ ...SYMBOLS, ...change })).toMatchObject({ text, isBad });
  });
});
