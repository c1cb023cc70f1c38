/**
 * Where an image says which of its code is of which IL: in a section that is a sparse array by the index of functions, whose
 * blocks of 16 are binary trees. Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md, and live processes.
 */
import type { RuntimeMemory } from '../runtime-memory.ts';
import type { DotnetLayout, MapForm } from './layout.ts';
import type { FoundMethod, Section } from './sections.ts';

/** 'RTR' */
const SIGNATURE = 0x525452;
/** The versions of images whose maps were read: those up to .NET 9's, and .NET 10's. */
const NEWEST_IN_NIBBLES = 10;
const IN_BITS = 16;
const HEADER_BYTES = 16;
const SECTION_BYTES = 12;
const MAX_SECTIONS = 64;
const FUNCTIONS = 102;
const DEBUG_INFO = 105;
const BLOCK = 16;

export interface PrecompiledMap {
  /** Of the sizes in front of it. */
  address: number;
  form: MapForm;
}

/** Of a method, undefined where none is told. Throws CannotRead. */
export function precompiledMapOf(
  memory: RuntimeMemory,
  { precompiled }: DotnetLayout,
  { begin, module }: Section,
  { index }: FoundMethod,
): PrecompiledMap | undefined {
  const info = memory.word(module + precompiled.info);
  const header = memory.word(info + precompiled.header);
  const head = memory.view(header, HEADER_BYTES);
  const count = head.getUint32(12, true);
  const form = formOf(head.getUint16(4, true));
  if (head.getUint32(0, true) !== SIGNATURE || !form || count > MAX_SECTIONS) return undefined;
  const sections = memory.view(header + HEADER_BYTES, count * SECTION_BYTES);
  const addressOf = (type: number): number | undefined => {
    for (let at = 0; at < sections.byteLength; at += SECTION_BYTES)
      if (sections.getUint32(at, true) === type) return begin + sections.getUint32(at + 4, true);
    return undefined;
  };
  // one of several images that share a table has no map of its own
  if (addressOf(FUNCTIONS) !== memory.word(info + precompiled.functions)) return undefined;
  const array = addressOf(DEBUG_INFO);
  const entry = array === undefined ? undefined : findInArray(memory, array, index);
  if (entry === undefined) return undefined;
  // the same as one before it, or its own
  const { value: back, next } = readNumber(memory, entry);
  return { address: back === 0 ? next : entry - back, form };
}

function formOf(major: number): MapForm | undefined {
  if (major === IN_BITS) return 'bits';
  return major <= NEWEST_IN_NIBBLES ? 'nibbles' : undefined;
}

function findInArray(memory: RuntimeMemory, array: number, index: number): number | undefined {
  const { value: head, next: base } = readNumber(memory, array);
  if (index >= head >> 2) return undefined;
  const block = Math.floor(index / BLOCK);
  const width = head & 3;
  const offset =
    width === 0
      ? memory.u8(base + block)
      : width === 1
        ? memory.u16(base + 2 * block)
        : memory.u32(base + 4 * block);
  let at = base + offset;
  for (let bit = BLOCK >> 1; bit > 0; bit >>= 1) {
    const { value, next } = readNumber(memory, at);
    if (index & bit && value & 2) at += value >>> 2;
    else if (!(index & bit) && value & 1) at = next;
    // a tree of one
    else return (value & 3) === 0 && value >>> 2 === index % BLOCK ? next : undefined;
  }
  return at;
}

/** How many low bits of the first byte are set says how many bytes follow; four: all of the number does. */
function readNumber(memory: RuntimeMemory, at: number): { value: number; next: number } {
  const first = memory.u8(at);
  const more = first & 1 ? (first & 2 ? (first & 4 ? (first & 8 ? 4 : 3) : 2) : 1) : 0;
  if (more === 4) return { value: memory.u32(at + 1), next: at + 5 };
  let value = first >> (more + 1);
  for (let i = 0; i < more; i++) value += memory.u8(at + 1 + i) * 2 ** (7 - more + 8 * i);
  return { value, next: at + 1 + more };
}
