/**
 * What a JIT has registered for debuggers: `__jit_debug_descriptor` begins a list of ELF objects in memory (GDB's manual,
 * "JIT Compilation Interface").
 *
 * The descriptor is found by what it is, not by its name, which stripped libraries don't have: it leads to an entry that
 * has none before it, and that one to an ELF file.
 */
import type { Pid } from '../../common/base/brand.ts';
import { bufferSource, OutOfBounds } from '../../common/base/byte-source.ts';
import { ElfError, type ElfFile, parseElf, SHF_EXECINSTR } from '../../common/elf/elf.ts';
import { MAX_ADDRESS } from '../../common/jit/jit-code.ts';
import { type ForeignFiles, memoryReader, type ReadAt } from '../processes/foreign-files.ts';
import { readMappings } from '../processes/process-maps.ts';
import type { FrameSection } from '../stack-deltas/sources/frame-section.ts';
import { findDebugFrame } from '../stack-deltas/sources/frame-sources.ts';

/** version, action, the entry that it is about, and the first one: 4, 4, 8 and 8 bytes. */
const DESCRIPTOR_BYTES = 24;
/** The next one, the one before, and the object's address and size. */
const ENTRY_BYTES = 32;
const MAX_ENTRIES = 4096;
export const MAX_OBJECT_BYTES = 1 << 20;
/** Objects that are asked for unwind information; QEMU registers one. */
const MAX_DESCRIBED_OBJECTS = 64;
const MAX_CODE_SECTIONS = 16;
const MAX_SEARCHED_BYTES = 32 << 20;
const MAX_PART_BYTES = 8 << 20;
const MAX_CANDIDATES = 256;
/** In the upper half of an address of user space, which has 47 bits on amd64 and 48 on arm64. */
const MAX_HIGH_WORD = 0xffff;
const ELF_MAGIC = 0x464c457f;
export const ET_REL = 1;

/** Its address; undefined where the process has none that leads to anything. */
export async function findJitDescriptor(files: ForeignFiles, pid: Pid): Promise<number | undefined> {
  const memory = memoryReader(files, pid);
  let left = MAX_SEARCHED_BYTES;
  let candidates = MAX_CANDIDATES;
  for (const { start, end, isWritable, isReadable, path } of await readMappings(pid, files)) {
    if (!isReadable || !isWritable || path === '' || left <= 0) continue;
    const bytes = Buffer.from(new ArrayBuffer(Math.min(end - start, MAX_PART_BYTES, left)));
    left -= bytes.length;
    const count = await memory(start, bytes);
    for (const at of likelyDescriptors(bytes.subarray(0, count))) {
      if (candidates-- <= 0) return undefined;
      const first = Number(bytes.readBigUInt64LE(at + 16));
      if (await isFirstEntry(first, memory)) return start + at;
    }
  }
  return undefined;
}

function* likelyDescriptors(bytes: Buffer): Iterable<number> {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.length / 4));
  for (let i = 0; i + 6 <= words.length; i += 2) {
    if (words[i] !== 1 || words[i + 1]! > 2) continue;
    const [relevantHigh, first, firstHigh] = [words[i + 3]!, words[i + 4]!, words[i + 5]!];
    const isPointer = first % 8 === 0 && firstHigh <= MAX_HIGH_WORD && (first > 0xffff || firstHigh > 0);
    if (isPointer && relevantHigh <= MAX_HIGH_WORD) yield i * 4;
  }
}

async function isFirstEntry(address: number, memory: ReadAt): Promise<boolean> {
  const entry = await readEntry(address, memory);
  if (entry?.previous !== 0) return false;
  const magic = Buffer.alloc(4);
  return (await memory(entry.object, magic)) === 4 && magic.readUInt32LE() === ELF_MAGIC;
}

/** Where it lies. */
export interface RegisteredObject {
  object: number;
  size: number;
}

interface Entry extends RegisteredObject {
  next: number;
  previous: number;
}

async function readEntry(address: number, memory: ReadAt): Promise<Entry | undefined> {
  const bytes = Buffer.alloc(ENTRY_BYTES);
  if (address === 0 || address > MAX_ADDRESS || (await memory(address, bytes)) < ENTRY_BYTES)
    return undefined;
  const word = (at: number): number => Number(bytes.readBigUInt64LE(at));
  return { next: word(0), previous: word(8), object: word(16), size: word(24) };
}

/** The newest first; undefined where the descriptor can't be read. */
export async function readObjectList(
  descriptor: number,
  memory: ReadAt,
  limit = MAX_ENTRIES,
): Promise<RegisteredObject[] | undefined> {
  const head = Buffer.alloc(DESCRIPTOR_BYTES);
  if ((await memory(descriptor, head)) < DESCRIPTOR_BYTES) return undefined;
  const objects: RegisteredObject[] = [];
  let next = Number(head.readBigUInt64LE(16));
  while (next !== 0 && objects.length < limit) {
    const entry = await readEntry(next, memory);
    if (!entry) break;
    objects.push(entry);
    next = entry.next;
  }
  return objects;
}

/** Code at its place, absolute addresses, and its .debug_frame. */
export interface DescribedCode {
  start: number;
  end: number;
  frames: FrameSection;
}

/**
 * Of the newest objects those that are linked and have a .debug_frame: QEMU describes its code nowhere else. In one that
 * is not linked (LLVM's) addresses are not written yet, and the process's own unwinder knows it anyway.
 */
export async function readDescribedCode(descriptor: number, memory: ReadAt): Promise<DescribedCode[]> {
  const described: DescribedCode[] = [];
  for (const { object, size } of (await readObjectList(descriptor, memory, MAX_DESCRIBED_OBJECTS)) ?? []) {
    if (size > MAX_OBJECT_BYTES) continue;
    const bytes = Buffer.alloc(size);
    const count = await memory(object, bytes);
    try {
      described.push(...describedCodeOf(parseElf(bufferSource(bytes.subarray(0, count)))));
    } catch (error) {
      if (!(error instanceof ElfError || error instanceof OutOfBounds)) throw error;
    }
  }
  return described;
}

/** Throws ElfError or OutOfBounds. */
export function describedCodeOf(elf: ElfFile): DescribedCode[] {
  const frames = elf.type === ET_REL ? undefined : findDebugFrame(elf);
  if (!frames) return [];
  return elf.sections
    .filter(({ flags, addr, size }) => flags & SHF_EXECINSTR && addr > 0 && addr + size <= MAX_ADDRESS)
    .slice(0, MAX_CODE_SECTIONS)
    .map(({ addr, size }) => ({ start: addr, end: addr + size, frames }));
}
