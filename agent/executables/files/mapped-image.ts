/**
 * An executable that can't be opened, out of the pages of it that a process has mapped: on another user's FUSE mount
 * (AppImages) or behind a server that trusts no root, not even root may read the file. What runs is in memory: headers,
 * code, unwind information and the dynamic linker's symbols. docs/decisions/symbols/unreadable-executables.md
 */
import { writeSync } from 'node:fs';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { PT_LOAD, parseElf, type Segment } from '../../../common/elf/elf.ts';
import { closeFile, type ForeignFiles } from '../../processes/foreign-files.ts';
import { type ProcessMapping, readMappings } from '../../processes/process-maps.ts';
import type { FileRecord } from '../../records/records.ts';
import type { KeptFile } from './kept-files.ts';

/** Limit for one file: the largest programs have some 100 MiB of code; what is left out has no names. */
const MAX_IMAGE_BYTES = 64 << 20;
/** The size of the file is what its owner says; beyond it there are only holes. */
const MAX_FILE_BYTES = 2 ** 36;
/** Within a second: a file server has to decompress them, maybe. */
const STEP_BYTES = 4 << 20;
const MAX_RANGES = 128;
const HEADER_BYTES = 4096;
const PT_DYNAMIC = 2;
const MAX_DYNAMIC_BYTES = 16 << 10;
/** DT_STRTAB, DT_SYMTAB, DT_GNU_HASH: some dynamic linkers (glibc) make their values addresses in memory. */
const ADDRESSES = new Set([5, 6, 0x6ffffef5]);
/** The older hash table hardly says which names are right. */
const DT_HASH = 4;

/** Limit for all copies together. */
const MAX_COPIES_BYTES = 128 << 20;

/** Copies that are open, in memory. */
export class MappedImages {
  readonly #files: ForeignFiles;
  #bytes = 0;

  constructor(files: ForeignFiles) {
    this.#files = files;
  }

  /** Undefined where there is no room, or as {@link copyMappedImage}. */
  async copy(record: FileRecord): Promise<KeptFile | undefined> {
    // several are copied at once
    const reserved = Math.min(Number(record.size), MAX_IMAGE_BYTES);
    if (this.#bytes + reserved > MAX_COPIES_BYTES) return undefined;
    this.#bytes += reserved;
    let image: MappedImage | undefined;
    try {
      image = await copyMappedImage(record, this.#files);
    } finally {
      this.#bytes += (image?.bytes ?? 0) - reserved;
    }
    if (!image) return undefined;
    const { fd, bytes } = image;
    const release = (): void => {
      this.#bytes -= bytes;
    };
    return { fd, release };
  }
}

interface MappedImage {
  /** A file in memory with what could be copied at its place, and holes. */
  fd: number;
  /** Bytes that it takes. */
  bytes: number;
}

/** Undefined where the process is gone, has mapped something else there by now, or does not answer. */
async function copyMappedImage(record: FileRecord, files: ForeignFiles): Promise<MappedImage | undefined> {
  const size = Number(record.size);
  const own = await findOwn(record, files);
  if (own.length === 0 || size > MAX_FILE_BYTES) return undefined;
  let image: MappedImage | undefined;
  for (const ranges of inSteps(own, size)) {
    const target = { fd: image?.fd ?? -1, size };
    const copied = await files.copyPages(record, target, Float64Array.from(ranges.flat()));
    if (typeof copied === 'number') {
      if (image) closeFile(image);
      return undefined;
    }
    image = { fd: image?.fd ?? copied.fd, bytes: (image?.bytes ?? 0) + Number(copied.size) };
  }
  // it may have unmapped the file meanwhile, and mapped another one
  const isSame = image && image.bytes > 0 && (await findOwn(record, files)).length === own.length;
  if (image && isSame) await addDynamic(record, own, files, image.fd);
  if (image && !isSame) closeFile(image);
  return isSame ? image : undefined;
}

/** The process's mappings of the file, if the file is still mapped where it was seen. */
async function findOwn(record: FileRecord, files: ForeignFiles): Promise<ProcessMapping[]> {
  const mappings = await readMappings(record.pid, files);
  const own = mappings.filter(({ device, inode }) => device === record.device && inode === record.inode);
  const isThere = own.some(({ start, end }) => start <= record.vmaStart && record.vmaStart < end);
  return isThere ? own : [];
}

/** Address, offset in the file and length. */
type Range = [number, number, number];

/** Headers first, then what is not code: the least that makes the rest worth something. */
function* inSteps(own: readonly ProcessMapping[], size: number): Iterable<Range[]> {
  const first = ({ offset, isExecutable }: ProcessMapping): number =>
    offset === 0 ? 0 : isExecutable ? 2 : 1;
  const readable = own.filter(({ isReadable, isWritable }) => isReadable && !isWritable);
  let left = MAX_IMAGE_BYTES;
  let step: Range[] = [];
  let room = STEP_BYTES;
  for (const { start, end, offset } of readable.sort((a, b) => first(a) - first(b)).slice(0, MAX_RANGES)) {
    const length = Math.min(end - start, size - offset, left);
    for (let done = 0; done < length; ) {
      const part = Math.min(length - done, room);
      step.push([start + done, offset + done, part]);
      done += part;
      left -= part;
      room -= part;
      if (room > 0) continue;
      yield step;
      step = [];
      room = STEP_BYTES;
    }
  }
  if (step.length > 0) yield step;
}

/**
 * The dynamic section is written over by the dynamic linker, so that its page is the process's own. It is believed as far
 * as what it leads to is right, see common/elf/dynamic-sections.ts.
 */
async function addDynamic(
  record: FileRecord,
  own: readonly ProcessMapping[],
  files: ForeignFiles,
  fd: number,
): Promise<void> {
  const start = own.find(({ offset }) => offset === 0);
  if (!start) return;
  const session = files.newSession();
  const header = await files.readMemory(record.pid, start.start, HEADER_BYTES, session);
  const segments = typeof header === 'number' ? [] : segmentsOf(header);
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  const first = segments.find(({ type, offset }) => type === PT_LOAD && offset === 0);
  if (!dynamic || !first) return;
  const bias = start.start - first.vaddr;
  const length = Math.min(dynamic.filesz, MAX_DYNAMIC_BYTES);
  const bytes = await files.readMemory(record.pid, bias + dynamic.vaddr, length, session);
  if (typeof bytes === 'number' || dynamic.offset + bytes.length > record.size) return;
  moveBack(bytes, bias, segments);
  writeSync(fd, bytes, 0, bytes.length, dynamic.offset);
}

function segmentsOf(header: Buffer): readonly Segment[] {
  try {
    // sections lie behind what was read
    if (header.length >= 64) header.writeBigUInt64LE(0n, 40);
    return parseElf(bufferSource(header)).segments;
  } catch {
    return [];
  }
}

/** Makes addresses in memory those of the file again. */
function moveBack(dynamic: Buffer, bias: number, segments: readonly Segment[]): void {
  const isIn = (address: number): boolean =>
    segments.some(
      ({ type, vaddr, memsz }) => type === PT_LOAD && address >= vaddr && address < vaddr + memsz,
    );
  for (let at = 0; at + 16 <= dynamic.length; at += 16) {
    const tag = Number(dynamic.readBigUInt64LE(at));
    if (tag === DT_HASH) dynamic.writeBigUInt64LE(0n, at + 8);
    if (!ADDRESSES.has(tag)) continue;
    const value = Number(dynamic.readBigUInt64LE(at + 8));
    if (!isIn(value) && isIn(value - bias)) dynamic.writeBigUInt64LE(BigInt(value - bias), at + 8);
  }
}
