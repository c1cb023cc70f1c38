/**
 * Code of a file that the process itself has moved to memory that no file backs, at the same addresses, for larger pages:
 * HHVM, ClickHouse, Intel's iodlr, libhugetlbfs. It lies inside the file's image, between what is still mapped of it.
 */

import { bufferSource, OutOfBounds } from '../../common/base/byte-source.ts';
import { ElfError, type ElfFile, PF_X, PT_LOAD, parseElf } from '../../common/elf/elf.ts';
import type { ReadAt } from '../processes/foreign-files.ts';
import { isMemory, type ProcessMapping } from '../processes/process-maps.ts';

const PAGE_BYTES = 4096;
/** Large pages begin at round addresses: what is in front of them and behind is memory of its own, or still the file. */
const MAX_PARTS = 8;
const MAX_PAGES_COMPARED = 64;
const MAX_HEADER_BYTES = 4096;

/** The file whose image the memory lies in: it is what is mapped before it and behind it. */
export function findImage(mappings: readonly ProcessMapping[], index: number): ProcessMapping | undefined {
  const before = nextFile(mappings, index, -1);
  const behind = nextFile(mappings, index, 1);
  return before && behind && before.path === behind.path ? before : undefined;
}

function nextFile(
  mappings: readonly ProcessMapping[],
  index: number,
  step: 1 | -1,
): ProcessMapping | undefined {
  for (let i = index + step, left = MAX_PARTS; left > 0; i += step, left--) {
    const mapping = mappings[i];
    const neighbour = mappings[i - step]!;
    const isNext = step > 0 ? mapping?.start === neighbour.end : mapping?.end === neighbour.start;
    if (!mapping || !isNext) return undefined;
    if (!isMemory(mapping)) return mapping;
  }
  return undefined;
}

/** By the file's program headers; undefined where its code is elsewhere. */
export function offsetInFile(header: Uint8Array, mapped: ProcessMapping, start: number): number | undefined {
  let elf: ElfFile;
  try {
    elf = parseElf(bufferSource(header));
  } catch (error) {
    if (error instanceof ElfError || error instanceof OutOfBounds) return undefined;
    throw error;
  }
  const loads = elf.segments.filter(({ type }) => type === PT_LOAD);
  const own = loads.find(
    ({ offset, filesz }) =>
      mapped.offset >= offset - (offset % PAGE_BYTES) && mapped.offset < offset + filesz,
  );
  if (!own) return undefined;
  const bias = mapped.start - mapped.offset - (own.vaddr - own.offset);
  const code = loads.find(
    ({ flags, vaddr, filesz }) =>
      flags & PF_X && start - bias >= vaddr - (vaddr % PAGE_BYTES) && start - bias < vaddr + filesz,
  );
  return code && start - bias - code.vaddr + code.offset;
}

/**
 * Whether memory holds what the file does: pages all over it, the one with `address` among them. Code is not relocated;
 * of one that was changed the file's rules and names may be wrong.
 */
export async function isSameCode(
  { start, end }: { start: number; end: number },
  address: number,
  { memory, file, offset }: { memory: ReadAt; file: ReadAt; offset: number },
): Promise<boolean> {
  const pages = Math.floor((end - start) / PAGE_BYTES);
  const step = Math.max(1, Math.floor(pages / MAX_PAGES_COMPARED));
  const wanted = new Set([Math.floor((address - start) / PAGE_BYTES)]);
  for (let page = 0; page < pages; page += step) wanted.add(page);
  const [ours, theirs] = [Buffer.alloc(PAGE_BYTES), Buffer.alloc(PAGE_BYTES)];
  let compared = 0;
  for (const page of wanted) {
    const at = page * PAGE_BYTES;
    if ((await memory(start + at, ours)) < PAGE_BYTES) return false;
    const count = await file(offset + at, theirs);
    // what is behind the end of the file's code is padding
    if (count === 0) continue;
    if (ours.compare(theirs, 0, count, 0, count) !== 0) return false;
    compared++;
  }
  return compared > 0;
}

/** Enough of a file for its program headers. */
export async function readHeader(file: ReadAt): Promise<Uint8Array> {
  const bytes = Buffer.alloc(MAX_HEADER_BYTES);
  const header = bytes.subarray(0, await file(0, bytes));
  // sections lie behind what was read
  if (header.length >= 64) {
    header.writeBigUInt64LE(0n, 40);
    header.writeUInt32LE(0, 60);
  }
  return header;
}
