import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bufferSource } from '../base/byte-source.ts';
import { buildElf } from './build-elf.ts';
import { buildGoPclntab, type GoTableSpec } from './build-go-pclntab.ts';
import { parseElf } from './elf.ts';
import { type CodeRange, findGoCode } from './go-code.ts';

const sizes = [[0, 0]] as const;
const c = (start: number) => ({ name: 'x_cgo_init', start, sizes, isC: true });
const go = (start: number) => ({ name: 'main.work', start, sizes });
const spec = (more: Partial<GoTableSpec>): GoTableSpec => ({
  form: '1.20',
  textStart: 0x1000,
  end: 0x1400,
  functions: [c(0x1000), c(0x1100), go(0x1200), go(0x1300)],
  ...more,
});

const rangeOf = (bytes: Uint8Array): CodeRange | undefined =>
  findGoCode(parseElf(bufferSource(buildElf({ sections: [{ name: '.gopclntab', bytes }] }))));

describe("Go's code", () => {
  it.each(['1.16', '1.18', '1.20'] as const)('begins behind that of C, in the form of Go %s', (form) => {
    expect(rangeOf(buildGoPclntab(spec({ form })))).toEqual({ start: 0x1200, end: 0x1400 });
  });

  it('is all of a program without C', () => {
    expect(rangeOf(buildGoPclntab(spec({ functions: [go(0x1000)] })))).toEqual({
      start: 0x1000,
      end: 0x1400,
    });
  });

  it('is none where all is C, and in a file without the table', () => {
    expect(rangeOf(buildGoPclntab(spec({ functions: [c(0x1000)] })))).toBeUndefined();
    expect(findGoCode(parseElf(bufferSource(buildElf({}))))).toBeUndefined();
  });

  it('is a range or none in damaged tables', () => {
    const good = buildGoPclntab(spec({}));
    fc.assert(
      fc.property(
        fc.nat(good.length - 1),
        fc.nat(255),
        fc.nat(good.length),
        fc.boolean(),
        (at, value, cut, cuts) => {
          const bytes = Uint8Array.from(good);
          bytes[at] = value;
          const range = rangeOf(cuts ? bytes.subarray(0, cut) : bytes);
          if (range) expect(range.start).toBeLessThan(range.end);
        },
      ),
      { numRuns: 500 },
    );
  });
});
