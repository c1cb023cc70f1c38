/** The kernel's symbols, sorted and without aliases, made from what {@link KallsymsReader} read. */

import { compareAliases, NameColumn } from '../name-column.ts';
import type { RawSymbols } from './kallsyms.ts';
import type { KernelImage } from './kernel-images.ts';

export const PADDING_PREFIX = '__pfx_';
/** Symbols handled between two pauses: a few milliseconds, before the code is compiled some more. */
const STEP = 1 << 14;
const TWO_32 = 2 ** 32;
/** Indices beside 32-bit offsets in doubles. */
const PACK = 2 ** 21;

/** Columns by ascending address; name i is `names[nameStarts[i], nameStarts[i + 1])`. */
export interface KernelTable {
  count: number;
  /** Relative to KERNEL_BASE. */
  addresses: Float64Array;
  imageOf: Uint16Array;
  /** An empty name stands for `__pfx_` and the next one. */
  nameStarts: Uint32Array;
  names: NameColumn;
}

/** One entry an address, with the best of its names. */
export function* buildKernelTable(
  raw: RawSymbols,
  images: readonly KernelImage[],
): Generator<void, KernelTable, void> {
  const chosen = yield* chooseNames(raw, images);
  const table: KernelTable = {
    count: 0,
    addresses: new Float64Array(chosen.length),
    imageOf: new Uint16Array(chosen.length),
    nameStarts: new Uint32Array(chosen.length + 1),
    names: new NameColumn(Math.max(16, raw.names.length >> 1)),
  };
  for (let k = 0; k < chosen.length; k++) {
    append(table, raw, chosen[k]!, chosen[k + 1] ?? -1);
    if (k % STEP === 0) yield;
  }
  table.names.trim();
  return table;
}

/** Indices of the symbols that stay, in the order of addresses: the best one of each address. */
function* chooseNames(raw: RawSymbols, images: readonly KernelImage[]): Generator<void, Uint32Array, void> {
  const order = sortByAddress(raw);
  yield;
  let count = 0;
  for (let k = 0; k < order.length; k++) {
    if (k % STEP === 0) yield;
    const i = order[k]!;
    if (!isInImage(raw, i, images)) continue;
    const last = count > 0 ? order[count - 1]! : -1;
    if (last < 0 || raw.addresses[last] !== raw.addresses[i]) order[count++] = i;
    else if (isBetter(raw, i, last)) order[count - 1] = i;
  }
  return order.subarray(0, count);
}

/** `next` is the symbol behind, -1 if none: `__pfx_f` in front of `f` needs no name of its own. */
function append(table: KernelTable, raw: RawSymbols, i: number, next: number): void {
  const at = table.count++;
  table.addresses[at] = raw.addresses[i]!;
  table.imageOf[at] = raw.modules[i]!;
  if (next < 0 || !isPaddingOf(raw, i, next)) {
    table.names.append(raw.names.bytes, raw.nameStarts[i]!, raw.nameStarts[i + 1]!);
  }
  table.nameStarts[at + 1] = table.names.length;
}

const paddingBytes = new TextEncoder().encode(PADDING_PREFIX);

/**
 * Half of the kernel's symbols can be `__pfx_` ones: the padding in front of a function that is built with room
 * for call thunks (Linux 6.2). Such a name is left empty, and made from the next one again.
 */
function isPaddingOf(raw: RawSymbols, i: number, next: number): boolean {
  const { bytes } = raw.names;
  const start = raw.nameStarts[i]!;
  const nameStart = start + PADDING_PREFIX.length;
  const length = raw.nameStarts[i + 1]! - nameStart;
  const nextStart = raw.nameStarts[next]!;
  if (length <= 0 || length !== raw.nameStarts[next + 1]! - nextStart) return false;
  for (let k = 0; k < paddingBytes.length; k++) if (bytes[start + k] !== paddingBytes[k]) return false;
  for (let k = 0; k < length; k++) if (bytes[nameStart + k] !== bytes[nextStart + k]) return false;
  return true;
}

const alias = (raw: RawSymbols, i: number) => ({
  bind: raw.binds[i]!,
  bytes: raw.names.bytes,
  start: raw.nameStarts[i]!,
  end: raw.nameStarts[i + 1]!,
});

function isInImage(raw: RawSymbols, i: number, images: readonly KernelImage[]): boolean {
  const image = images[raw.modules[i]!]!;
  const address = raw.addresses[i]!;
  return image.pseudo || (address >= image.start && address < image.limit);
}

/** `_stext`, `__sched_text_start` and the like delimit sections; they must not stand for the function there. */
function isMarker(raw: RawSymbols, i: number): boolean {
  const name = raw.names.decode(raw.nameStarts[i]!, raw.nameStarts[i + 1]!);
  return /^(_s?text|_head|__\w+_text_(start|end))$/.test(name);
}

function isBetter(raw: RawSymbols, i: number, than: number): boolean {
  const markers = Number(isMarker(raw, i)) - Number(isMarker(raw, than));
  return (markers || compareAliases(alias(raw, i), alias(raw, than))) < 0;
}

/** Indices in the order of addresses. The kernel's own are sorted in the file, modules behind them are not. */
function sortByAddress(raw: RawSymbols): Uint32Array {
  const { addresses, count } = raw;
  let sorted = count === 0 ? 0 : 1;
  while (sorted < count && addresses[sorted]! >= addresses[sorted - 1]!) sorted++;
  const tail = sortRange(addresses, sorted, count);
  const order = new Uint32Array(count);
  let head = 0;
  let next = 0;
  for (let i = 0; i < count; i++) {
    const takeHead = next >= tail.length || (head < sorted && addresses[head]! <= addresses[tail[next]!]!);
    order[i] = takeHead ? head++ : tail[next++]!;
  }
  return order;
}

/** Indices from `from` to `to` by address. Modules lie close together, so doubles can be sorted natively. */
function sortRange(addresses: Float64Array, from: number, to: number): Uint32Array {
  let low = Number.POSITIVE_INFINITY;
  let high = 0;
  for (let i = from; i < to; i++) {
    low = Math.min(low, addresses[i]!);
    high = Math.max(high, addresses[i]!);
  }
  if (high - low < TWO_32 && to - from <= PACK) {
    const keys = new Float64Array(to - from);
    for (let i = from; i < to; i++) keys[i - from] = (addresses[i]! - low) * PACK + (i - from);
    return Uint32Array.from(keys.sort(), (key) => from + (key % PACK));
  }
  const indices = Uint32Array.from({ length: to - from }, (_, i) => from + i);
  return indices.sort((a, b) => addresses[a]! - addresses[b]! || a - b);
}
