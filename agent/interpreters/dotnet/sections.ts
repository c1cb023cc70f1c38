/**
 * .NET's map of its code (RangeSectionMap), or the list that .NET 6 and 7 keep, and the map of an image from code to methods: what ebpf/dotnet/sections.h walks
 * for unwinding is walked here for naming.
 */
import { type RuntimeMemory, wordAt } from '../runtime-memory.ts';
import type { DotnetLayout } from './layout.ts';

/** Bits 17..56 of an address, 8 a level. */
const LEVELS = 5;
const TOP = 2 ** 49;
const MAX_FRAGMENTS = 16;
const SECTION_BYTES = 64;
const MAX_SECTIONS = 256;
/** Of a section in a list: the next one. */
const NEXT = 24;

export interface Section {
  begin: number;
  /** Of an image. */
  module: number;
}

/** Marks in the low bit say that what the pointer leads to may be unloaded. */
const unmarked = (pointer: number): number => pointer - (pointer % 2);

/** Undefined where the address is not code of .NET's. Throws CannotRead. */
export function findSection(
  memory: RuntimeMemory,
  layout: DotnetLayout,
  address: number,
): Section | undefined {
  return layout.hasList ? findInList(memory, layout, address) : findInMap(memory, layout, address);
}

function findInList(
  memory: RuntimeMemory,
  { ranges, section }: DotnetLayout,
  address: number,
): Section | undefined {
  let node = memory.word(ranges);
  for (let i = 0; i < MAX_SECTIONS && node !== 0; i++) {
    const view = memory.view(node, SECTION_BYTES);
    const begin = wordAt(view, 0);
    if (address >= begin && address < wordAt(view, 8)) return { begin, module: wordAt(view, section.module) };
    node = wordAt(view, NEXT);
  }
  return undefined;
}

function findInMap(memory: RuntimeMemory, layout: DotnetLayout, address: number): Section | undefined {
  let node = layout.ranges;
  for (let level = 0, unit = TOP; level < LEVELS; level++, unit /= 256) {
    node = unmarked(memory.word(node + (Math.floor(address / unit) % 256) * 8));
    if (node === 0) return undefined;
  }
  for (let i = 0; i < MAX_FRAGMENTS && node !== 0; i++) {
    const fragment = memory.view(node, 32);
    if (address >= wordAt(fragment, 8) && address < wordAt(fragment, 16)) {
      const section = memory.view(wordAt(fragment, 24), SECTION_BYTES);
      return { begin: wordAt(section, 0), module: wordAt(section, layout.section.module) };
    }
    node = unmarked(wordAt(fragment, 0));
  }
  return undefined;
}

const FUNCTION_BYTES = 12;
const MAX_FUNCTIONS = 1 << 21;
/** Parts of a method that stand behind it in the table: its handlers. */
const MAX_FUNCLETS = 64;
const BUCKET_BYTES = 64;
const SLOTS = 4;
const MAX_BUCKETS = 2 ** 28;
const MAX_TRIES = 32;
/** In the upper half of the first value: a key that belongs into the bucket is in another. */
const COLLISION = 2 ** 31;

export interface FoundMethod {
  methodDesc: number;
  /** Where its code begins. */
  start: number;
  /** Of its first function in the image's table. */
  index: number;
}

/** The method that the code at `address` of an image is of, or a part of. Undefined where it has none. Throws CannotRead. */
export function methodInImage(
  memory: RuntimeMemory,
  { precompiled }: DotnetLayout,
  { begin, module }: Section,
  address: number,
): FoundMethod | undefined {
  const info = memory.word(module + precompiled.info);
  const table = memory.word(info + precompiled.functions);
  const count = Math.min(memory.u32(info + precompiled.count), MAX_FUNCTIONS);
  const buckets = memory.word(info + precompiled.buckets);
  const startOf = (index: number): number => begin + memory.u32(table + index * FUNCTION_BYTES);
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (startOf(middle) <= address) low = middle + 1;
    else high = middle;
  }
  for (let index = low - 1; index >= 0 && index > low - MAX_FUNCLETS; index--) {
    const start = startOf(index);
    const methodDesc = lookUp(memory, buckets, start);
    if (methodDesc !== undefined) return { methodDesc, start, index };
  }
  return undefined;
}

/** A HashMap of .NET's: buckets of four keys and four values, behind one that says how many there are. */
export function lookUp(memory: RuntimeMemory, buckets: number, key: number): number | undefined {
  const count = memory.word(buckets);
  if (count < 2 || count > MAX_BUCKETS) return undefined;
  const first = Math.floor(key / 4) % 2 ** 32;
  const step = 1 + (((Math.floor(key / 32) % 2 ** 32) + 1) % (count - 1));
  for (let i = 0, seed = first; i < MAX_TRIES; i++, seed = (seed + step) % 2 ** 32) {
    const bucket = memory.view(buckets + (1 + (seed % count)) * BUCKET_BYTES, BUCKET_BYTES);
    for (let slot = 0; slot < SLOTS; slot++)
      if (wordAt(bucket, slot * 8) === key) return valueAt(bucket, (SLOTS + slot) * 8) * 2;
    if (bucket.getUint32(SLOTS * 8 + 4, true) < COLLISION) return undefined;
  }
  return undefined;
}

/** Without that mark; both together are more than a number holds. */
const valueAt = (bucket: DataView, at: number): number =>
  (bucket.getUint32(at + 4, true) % COLLISION) * 2 ** 32 + bucket.getUint32(at, true);
