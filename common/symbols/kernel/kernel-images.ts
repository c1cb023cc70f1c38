/** The kernel's text and its modules: where each begins and ends. */
import { KERNEL_BASE, type RawSymbols } from './kallsyms.ts';

export interface KernelImage {
  /** '' for the kernel itself. */
  name: string;
  /** First address and the one behind the last, relative to {@link KERNEL_BASE}. */
  start: number;
  limit: number;
  /** No image, but a collection of code that comes and goes symbol by symbol: `bpf`, `__builtin__ftrace`, … */
  pseudo: boolean;
}

/** A line of /proc/modules. */
export interface ModuleRange {
  name: string;
  base: bigint;
  /** Bytes of all its sections, so at least as much as its text. */
  size: number;
}

export const KALLSYMS_HIDDEN_REASON =
  'the kernel hides its addresses from this process (all of /proc/kallsyms are 0): ' +
  'give it CAP_SYSLOG, and set kernel.kptr_restrict to 1 if it is 2';

const MAX_MODULES = 4096;
const PAGE = 4096;

/** Reads /proc/modules: `NAME SIZE REFERENCES USERS STATE ADDRESS …`; lines without an address are left out. */
export function parseModules(text: string): ModuleRange[] {
  const modules: ModuleRange[] = [];
  for (const line of text.split('\n')) {
    const [name, size, , , , address] = line.split(' ');
    if (!name || !size || !address || !/^\d{1,15}$/.test(size) || !/^0x[0-9a-f]{1,16}$/.test(address))
      continue;
    const base = BigInt(address);
    if (base < KERNEL_BASE || modules.length >= MAX_MODULES) continue;
    modules.push({ name, base, size: Number(size) });
  }
  return modules;
}

/** Of the page that an address is in. */
export const endOfPage = (address: number): number => (Math.floor(address / PAGE) + 1) * PAGE;

/** Does kallsyms give this name as a module to code that is none's? */
export const isPseudo = (module: string): boolean => module === 'bpf' || module.startsWith('__builtin__');

/** One image a module index of `raw`; those without a symbol have `limit` 0. */
export function layOutImages(raw: RawSymbols, modules: readonly ModuleRange[]): KernelImage[] {
  const ranges = new Map(modules.map((module) => [module.name, module]));
  // not in the images themselves: each new number there would be an object, two for each of 200,000 symbols
  const starts = new Float64Array(raw.moduleNames.length).fill(Number.POSITIVE_INFINITY);
  const limits = new Float64Array(raw.moduleNames.length);
  for (let i = 0; i < raw.count; i++) {
    const index = raw.modules[i]!;
    const address = raw.addresses[i]!;
    if (address < starts[index]!) starts[index] = address;
    if (address >= limits[index]!) limits[index] = address;
  }
  const images = raw.moduleNames.map((name, index): KernelImage => {
    const range = ranges.get(name);
    const start = range ? Number(range.base - KERNEL_BASE) : starts[index]!;
    // the size of the last symbol is not known: it lies in this page at least
    const end = limits[index]! > 0 ? endOfPage(limits[index]!) : 0;
    return { name, start, limit: range ? start + range.size : end, pseudo: isPseudo(name) };
  });
  narrowToText(raw, images[0]!);
  return images;
}

/** The kernel's text is [_text or _stext, _etext): initialisation code behind it was freed after boot. */
function narrowToText(raw: RawSymbols, kernel: KernelImage): void {
  let start = Number.POSITIVE_INFINITY;
  let end = 0;
  for (let i = 0; i < raw.count; i++) {
    const from = raw.nameStarts[i]!;
    const length = raw.nameStarts[i + 1]! - from;
    if (raw.modules[i] !== 0 || length < 5 || length > 6 || raw.names.bytes[from] !== 0x5f) continue;
    const name = raw.names.decode(from, from + length);
    if (name === '_text' || name === '_stext') start = Math.min(start, raw.addresses[i]!);
    if (name === '_etext') end = raw.addresses[i]!;
  }
  if (start < end) Object.assign(kernel, { start, limit: end });
}
