/** Texts that a file has of itself, such as its version, which no symbol leads to. */
import { type ElfFile, PF_X, PT_LOAD } from './elf.ts';
import type { Segment } from './headers.ts';

/** Of a segment; a larger one holds no program's own texts alone. */
const MAX_SEGMENT = 64 << 20;
/** Of all segments together, which may overlap. */
const MAX_BYTES = 256 << 20;
/** Of one file: the mark may stand in other texts, too. */
const MAX_MARKS = 1024;
/** Of the text, before its mark's start and behind it. */
const MAX_TEXT = 256;

/**
 * The first match of `pattern` that is near `mark`, a fixed part of what it matches: that is faster to look for. Sections need
 * not be described in the file: what its processes have in memory is searched.
 */
export function findText(elf: ElfFile, mark: string, pattern: RegExp): RegExpExecArray | undefined {
  let [bytesLeft, marksLeft] = [MAX_BYTES, MAX_MARKS];
  for (const { type, offset, filesz } of elf.segments.toSorted((a, b) => isCode(a) - isCode(b))) {
    const length = Math.min(filesz, elf.source.size - offset);
    if (type !== PT_LOAD || filesz > MAX_SEGMENT || length <= 0 || length > bytesLeft) continue;
    bytesLeft -= length;
    const bytes = elf.source.read(offset, length);
    const segment = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = segment.indexOf(mark); at >= 0; at = segment.indexOf(mark, at + 1)) {
      if (marksLeft-- === 0) return undefined;
      const found = pattern.exec(segment.toString('latin1', Math.max(0, at - MAX_TEXT), at + MAX_TEXT));
      if (found) return found;
    }
  }
  return undefined;
}

/** Texts stand among code where a linker makes one segment of both; else it need not be searched. */
const isCode = ({ flags }: Segment): number => flags & PF_X;
