import { expect, it } from 'vitest';
import { bufferSource } from '../../common/base/byte-source.ts';
import { buildElf } from '../../common/elf/build-elf.ts';
import { parseElf, SHT_DYNSYM } from '../../common/elf/elf.ts';
import { detectRuntime } from './registry.ts';

const SHT_STRTAB = 3;
const names = { name: '.dynstr', type: SHT_STRTAB, bytes: Buffer.from('\0_PyEval_EvalFrameDefault\0') };

/** Its symbols' names are in the section of this index. */
const elfWith = (link: number) => {
  const symbols = { name: '.dynsym', type: SHT_DYNSYM, link, bytes: new Uint8Array(48) };
  return parseElf(bufferSource(buildElf({ sections: [names, symbols] })));
};

it('tells a file that is damaged from one whose runtime is not supported', () => {
  const { runtime, problem, damage } = detectRuntime(elfWith(77));
  expect({ runtime, problem }).toEqual({ runtime: undefined, problem: '' });
  expect(damage).not.toBe('');
});

it('finds nothing in a file that is neither', () => {
  expect(detectRuntime(elfWith(1))).toEqual({ runtime: undefined, problem: '', damage: '' });
});
