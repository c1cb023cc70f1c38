import { describe, expect, it } from 'vitest';
import { bufferSource } from '../base/byte-source.ts';
import { buildElf } from './build-elf.ts';
import { PF_W, PF_X, PT_LOAD, PT_NOTE, parseElf } from './elf.ts';
import { findText } from './find-text.ts';

const AT = 0x1000;
const VERSION = /Thing (\d+\.\d+) for/;

/** Of segments one behind the other, without section headers. */
function find(texts: string[], { type = PT_LOAD, filesz = undefined as number | undefined } = {}) {
  let end = AT;
  const segments = texts.map((text) => {
    const segment = { type, flags: PF_W, offset: end, filesz: filesz ?? text.length };
    end += text.length;
    return segment;
  });
  const sections = [{ name: '.rodata', addr: AT, bytes: Buffer.from(texts.join(''), 'latin1') }];
  const elf = parseElf(bufferSource(buildElf({ segments, sections, sectionHeaders: false })));
  return findText(elf, 'Thing ', VERSION)?.[1];
}

describe('a text that a file has of itself', () => {
  it('is found in any segment, by a mark within it', () => {
    expect(find(['\0Thing 1.2 for you\0'])).toBe('1.2');
    expect(find(['nothing', 'Thing 1.2 for you'])).toBe('1.2');
    expect(find(['Thing of another kind\0Thing \0Thing 3.4 for you'])).toBe('3.4');
    expect(find(['Thing', 'Thing 3.4', ''])).toBeUndefined();
    expect(find(['Thing 1.2 for you'], { type: PT_NOTE })).toBeUndefined();
  });

  it('is looked for among code last', () => {
    const bytes = Buffer.from('Thing 1.2 for youThing 3.4 for you');
    const segments = [
      { type: PT_LOAD, flags: PF_X, offset: AT, filesz: 17 },
      { type: PT_LOAD, flags: PF_W, offset: AT + 17, filesz: 17 },
    ];
    const sections = [{ name: '.rodata', addr: AT, bytes }];
    const elf = parseElf(bufferSource(buildElf({ segments, sections, sectionHeaders: false })));
    expect(findText(elf, 'Thing ', VERSION)?.[1]).toBe('3.4');
  });

  it('may begin before the mark', () => {
    const segments = [{ type: PT_LOAD, flags: PF_X, offset: AT, filesz: 300 }];
    const bytes = Buffer.from(`${'x'.repeat(260)}Server (17) for you`);
    const elf = parseElf(
      bufferSource(
        buildElf({ segments, sections: [{ name: '.text', addr: AT, bytes }], sectionHeaders: false }),
      ),
    );
    expect(findText(elf, ' for ', /Server \((\d+)\) for/)?.[1]).toBe('17');
  });

  it('is found in a file that ends early, as far as it goes', () => {
    expect(find(['Thing 1.2 for you'], { filesz: 1 << 20 })).toBe('1.2');
    const elf = parseElf(
      bufferSource(buildElf({ segments: [{ type: PT_LOAD, offset: 1 << 30, filesz: 1 << 20 }] })),
    );
    expect(findText(elf, 'Thing ', VERSION)).toBeUndefined();
  });

  it('is not looked for in segments without end, nor behind marks without end', () => {
    expect(find(['Thing 1.2 for you'], { filesz: 1 << 30 })).toBeUndefined();
    expect(find([`${'Thing '.repeat(1e6)}Thing 1.2 for you`])).toBeUndefined();
  });

  it('costs no more where a hostile file has many segments that are the same bytes', () => {
    const segments = Array.from({ length: 1000 }, () => ({ type: PT_LOAD, offset: AT, filesz: 32 << 20 }));
    let read = 0;
    const source = bufferSource(buildElf({ segments, size: AT + (32 << 20), sectionHeaders: false }));
    const elf = parseElf({
      size: source.size,
      read(offset, length) {
        read += length;
        return source.read(offset, length);
      },
    });
    expect(findText(elf, 'Thing ', VERSION)).toBeUndefined();
    expect(read).toBeLessThan(300 << 20);
  });
});
