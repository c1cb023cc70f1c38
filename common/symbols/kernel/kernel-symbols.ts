/**
 * Names of kernel addresses. Symbols of the kernel and of its modules carry no size: one ends where the next
 * begins, or where its image does.
 */
import { lastAtOrBelow } from '../../base/search.ts';
import { KallsymsReader, KERNEL_BASE, type RawSymbols } from './kallsyms.ts';
import {
  endOfPage,
  KALLSYMS_HIDDEN_REASON,
  type KernelImage,
  layOutImages,
  type ModuleRange,
} from './kernel-images.ts';
import { buildKernelTable, type KernelTable, PADDING_PREFIX } from './kernel-table.ts';

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

/** Reads all of kallsyms at once; see {@link KallsymsReader} for reading it piece by piece. */
export function parseKallsyms(
  text: Uint8Array | string,
  modules: readonly ModuleRange[] = [],
): KernelSymbols {
  const reader = new KallsymsReader();
  reader.push(typeof text === 'string' ? new TextEncoder().encode(text) : text);
  const steps = buildKernelSymbols(reader.finish(), modules);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Makes the table in steps of a few milliseconds, between which the caller can let others run. */
export function* buildKernelSymbols(
  raw: RawSymbols,
  modules: readonly ModuleRange[],
): Generator<void, KernelSymbols, void> {
  const images = layOutImages(raw, modules);
  yield;
  return new KernelSymbols(raw, images, yield* buildKernelTable(raw, images));
}

export class KernelSymbols {
  /** The kernel shows no addresses to this process; `hiddenReason` says why and what to do. */
  readonly hidden: boolean;
  readonly hiddenReason: string;
  /** Symbols that can be looked up; aliases are gone. */
  readonly count: number;
  readonly skippedLines: number;
  /** By index in the table; 0 is the kernel. */
  readonly images: readonly KernelImage[];
  readonly #table: KernelTable;

  constructor(raw: RawSymbols, images: readonly KernelImage[], table: KernelTable) {
    this.hidden = raw.shown === 0;
    this.hiddenReason = this.hidden ? KALLSYMS_HIDDEN_REASON : '';
    this.skippedLines = raw.skippedLines;
    this.images = images;
    this.count = table.count;
    this.#table = table;
  }

  /** Bytes of the columns. */
  get byteLength(): number {
    const { addresses, imageOf, nameStarts, names } = this.#table;
    return addresses.byteLength + imageOf.byteLength + nameStarts.byteLength + names.byteLength;
  }

  /** What lies at a kernel address; undefined outside the text of every known image. */
  lookup(address: bigint): KernelSymbol | undefined {
    if (address < KERNEL_BASE) return undefined;
    const at = Number(address - KERNEL_BASE);
    const i = lastAtOrBelow(this.#table.addresses, at);
    if (i >= 0) {
      const image = this.images[this.#table.imageOf[i]!]!;
      const start = this.#table.addresses[i]!;
      if (image.pseudo) {
        if (at - start < MAX_PSEUDO_SYMBOL)
          return { name: this.#name(i), module: image.name, offset: at - start };
      } else if (at < image.limit) {
        const name = at < this.#endOfLast(i, image) ? this.#name(i) : '';
        return { name, module: image.name, offset: at - image.start };
      }
    }
    const image = this.images.find(
      (candidate) => at >= candidate.start && at < candidate.limit && !candidate.pseudo,
    );
    return image && { name: '', module: image.name, offset: at - image.start };
  }

  /** Addresses of a function of the kernel, whatever the compiler has added to its name; reads all names. */
  rangeOf(name: string): { start: bigint; end: bigint } | undefined {
    const { addresses, imageOf } = this.#table;
    for (let i = 0; i + 1 < this.count; i++) {
      if (imageOf[i] !== 0) continue;
      const found = this.#name(i);
      if (found !== name && !found.startsWith(`${name}.`)) continue;
      const [start, end] = [addresses[i]!, addresses[i + 1]!];
      return { start: KERNEL_BASE + BigInt(start), end: KERNEL_BASE + BigInt(end) };
    }
    return undefined;
  }

  /** A module's size counts its data; code that nobody names may lie behind its last symbol's page. */
  #endOfLast(i: number, image: KernelImage): number {
    const { imageOf, addresses } = this.#table;
    const isLast = i + 1 === this.count || imageOf[i + 1] !== imageOf[i];
    return isLast && image.name !== '' ? endOfPage(addresses[i]!) : image.limit;
  }

  #name(i: number): string {
    const { nameStarts, names } = this.#table;
    const start = nameStarts[i]!;
    const end = nameStarts[i + 1]!;
    return start === end ? PADDING_PREFIX + this.#name(i + 1) : names.decode(start, end);
  }
}
