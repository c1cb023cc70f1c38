import type { ElfFile } from './elf.ts';

const MAX_STRINGS = 64 << 20;
const PT_INTERP = 3;
const PT_DYNAMIC = 2;
/** What needs musl says so by this name on Alpine, and by the other on Debian, where glibc is `libc.so.6`. */
const MUSL_NAMES = ['libc.musl-', '\0libc.so\0'];

/** Where threads keep what belongs to a pthread key depends on the C library. */
export function usesMusl(elf: ElfFile): boolean {
  const interpreter = elf.segments.find(({ type }) => type === PT_INTERP);
  if (interpreter && interpreter.filesz < 4096)
    return Buffer.from(elf.source.read(interpreter.offset, interpreter.filesz)).includes('ld-musl');
  if (!elf.segments.some(({ type }) => type === PT_DYNAMIC)) return false;
  const strings = elf.section('.dynstr');
  if (!strings) return false;
  const names = elf.sectionData(strings, MAX_STRINGS);
  const text = Buffer.from(names.buffer, names.byteOffset, names.length);
  return MUSL_NAMES.some((name) => text.includes(name, 0, 'latin1'));
}
