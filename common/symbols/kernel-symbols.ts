/**
 * Names of kernel addresses. Symbols of the kernel and of its modules carry no size: one ends where the next
 * begins, or where its image does.
 */

import { KallsymsReader, KERNEL_BASE, type RawSymbols } from './kallsyms.ts';
import { KALLSYMS_HIDDEN_REASON, type KernelImage, layOutImages, type ModuleRange } from './kernel-images.ts';
import { compareAliases, NameColumn } from './name-column.ts';

export interface KernelSymbol {
  /** '' where the address lies in an image, but in no symbol of it. */
  name: string;
  /** '' for the kernel itself, else the module's name, or a pseudo module such as `bpf`. */
  module: string;
  /** Bytes from the start of the image: of the kernel's text, or of the module; of a BPF program's symbol. */
  offset: number;
}

/** Code of a BPF program is a few hundred KiB at most; the next symbol may be far away. */
const MAX_PSEUDO_SYMBOL = 1 << 20;
const PADDING_PREFIX = '__pfx_';

/** Reads all of kallsyms at once; see {@link KallsymsReader} for reading it piece by piece. */
export function parseKallsyms(
  text: Uint8Array | string,
  modules: readonly ModuleRange[] = [],
): KernelSymbols {
  const reader = new KallsymsReader();
  reader.push(typeof text === 'string' ? new TextEncoder().encode(text) : text);
  return new KernelSymbols(reader.finish(), modules);
}

export class KernelSymbols {
  /** The kernel shows no addresses to this process; `hiddenReason` says why and what to do. */
  readonly hidden: boolean;
  readonly hiddenReason: string;
  /** Symbols that can be looked up; aliases are gone. */
  readonly count: number;
  readonly skippedLines: number;
  /** Image i has the symbols whose `#imageOf` is i; 0 is the kernel. */
  readonly images: readonly KernelImage[];
  readonly #addresses: Float64Array;
  readonly #imageOf: Uint16Array;
  readonly #nameStarts: Uint32Array;
  readonly #names: NameColumn;

  constructor(raw: RawSymbols, modules: readonly ModuleRange[]) {
    this.hidden = raw.shown === 0;
    this.hiddenReason = this.hidden ? KALLSYMS_HIDDEN_REASON : '';
    this.skippedLines = raw.skippedLines;
    this.images = layOutImages(raw, modules);
    const table = compact(raw, this.images);
    this.count = table.count;
    this.#addresses = table.addresses;
    this.#imageOf = table.imageOf;
    this.#nameStarts = table.nameStarts;
    this.#names = table.names;
    this.#names.trim();
  }

  /** Bytes of the columns. */
  get byteLength(): number {
    return (
      this.#addresses.byteLength +
      this.#imageOf.byteLength +
      this.#nameStarts.byteLength +
      this.#names.byteLength
    );
  }

  /** What lies at a kernel address; undefined outside the text of every known image. */
  lookup(address: bigint): KernelSymbol | undefined {
    if (address < KERNEL_BASE) return undefined;
    const at = Number(address - KERNEL_BASE);
    const i = findLast(this.#addresses, at);
    if (i >= 0) {
      const image = this.images[this.#imageOf[i]!]!;
      const start = this.#addresses[i]!;
      if (image.pseudo) {
        if (at - start < MAX_PSEUDO_SYMBOL)
          return { name: this.#name(i), module: image.name, offset: at - start };
      } else if (at < image.limit) {
        return { name: this.#name(i), module: image.name, offset: at - image.start };
      }
    }
    const image = this.images.find(
      (candidate) => at >= candidate.start && at < candidate.limit && !candidate.pseudo,
    );
    return image && { name: '', module: image.name, offset: at - image.start };
  }

  #name(i: number): string {
    const start = this.#nameStarts[i]!;
    const end = this.#nameStarts[i + 1]!;
    return start === end ? PADDING_PREFIX + this.#name(i + 1) : this.#names.decode(start, end);
  }
}

interface Table {
  count: number;
  addresses: Float64Array;
  imageOf: Uint16Array;
  nameStarts: Uint32Array;
  names: NameColumn;
}

/** One entry an address, sorted, with the best of its names. */
function compact(raw: RawSymbols, images: readonly KernelImage[]): Table {
  const chosen = chooseNames(raw, images);
  const table: Table = {
    count: 0,
    addresses: new Float64Array(chosen.length),
    imageOf: new Uint16Array(chosen.length),
    nameStarts: new Uint32Array(chosen.length + 1),
    names: new NameColumn(Math.max(16, raw.names.length >> 1)),
  };
  for (let k = 0; k < chosen.length; k++) append(table, raw, chosen[k]!, chosen[k + 1] ?? -1);
  return table;
}

/** Indices of the symbols that stay, in the order of addresses: the best one of each address. */
function chooseNames(raw: RawSymbols, images: readonly KernelImage[]): Uint32Array {
  const order = sortByAddress(raw);
  let count = 0;
  for (const i of order) {
    if (!isInImage(raw, i, images)) continue;
    const last = count > 0 ? order[count - 1]! : -1;
    if (last < 0 || raw.addresses[last] !== raw.addresses[i]) order[count++] = i;
    else if (isBetter(raw, i, last)) order[count - 1] = i;
  }
  return order.subarray(0, count);
}

/** `next` is the symbol behind, -1 if none: `__pfx_f` in front of `f` needs no name of its own. */
function append(table: Table, raw: RawSymbols, i: number, next: number): void {
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
  const tail = new Uint32Array(count - sorted);
  for (let i = 0; i < tail.length; i++) tail[i] = sorted + i;
  tail.sort((a, b) => addresses[a]! - addresses[b]! || a - b);
  const order = new Uint32Array(count);
  let head = 0;
  let next = 0;
  for (let i = 0; i < count; i++) {
    const takeHead = next >= tail.length || (head < sorted && addresses[head]! <= addresses[tail[next]!]!);
    order[i] = takeHead ? head++ : tail[next++]!;
  }
  return order;
}

/** Index of the last entry that is not greater than `value`, -1 if none. */
function findLast(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
