/** What tables of symbols say, as far as they are not damaged. */
import { OutOfBounds } from '../../common/base/byte-source.ts';
import { ElfError, type ElfFile, SHF_EXECINSTR, SHT_DYNSYM, SHT_SYMTAB } from '../../common/elf/elf.ts';
import { forEachEntry, readStrings, readU64 } from '../../common/symbols/section-entries.ts';

const MAX_ENTRIES = 1 << 24;
const ENTRY_BYTES = 24;
/** Names that share a long end cost each of them all of it. */
const MAX_NAME = 4096;
export const STT_OBJECT = 1;
export const STT_FUNC = 2;

/** Those of that type that the file defines, without their versions. */
export function forEachSymbol(
  elf: ElfFile,
  type: number,
  visit: (name: string, address: number) => void,
): void {
  for (const section of elf.sections) {
    if (section.type !== SHT_SYMTAB && section.type !== SHT_DYNSYM) continue;
    ignoreDamage(() => {
      const strings = Buffer.from(readStrings(elf, section));
      forEachEntry(elf, section, { entryBytes: ENTRY_BYTES, limit: MAX_ENTRIES }, (view, at) => {
        if ((view.getUint8(at + 4) & 0xf) !== type || view.getUint16(at + 6, true) === 0) return;
        const name = textAt(strings, view.getUint32(at, true));
        const version = name.indexOf('@');
        visit(version < 0 ? name : name.slice(0, version), readU64(view, at + 8));
      });
    });
  }
}

/** Up to its zero byte; '' where that is far. */
export function textAt(bytes: Buffer, at: number): string {
  const length = bytes.subarray(at, at + MAX_NAME).indexOf(0);
  return length < 0 ? '' : bytes.toString('utf8', at, at + length);
}

/** Where in the file code of that address is; undefined: it is not code. */
export function offsetOfCode(elf: ElfFile, address: number): number | undefined {
  const isCode =
    elf.sections.length === 0 ||
    elf.sections.some(
      ({ flags, addr, size }) => flags & SHF_EXECINSTR && address >= addr && address < addr + size,
    );
  return isCode ? elf.addressToFileOffset(address) : undefined;
}

/** What was found before the damage stays. */
export function ignoreDamage(read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof OutOfBounds || error instanceof ElfError)) throw error;
  }
}
