/**
 * The best name that a file's sources have for an address. Sources stand best first: DWARF, then symbol tables.
 */
import { RecentMap } from '../base/recent-map.ts';
import type { AddressRange } from './address-range.ts';
import { demangle } from './demangle/demangle.ts';
import type { SymbolFrame, SymbolSource } from './source.ts';
import type { SymbolTable } from './symbol-table.ts';

/** Characters of names in both forms: those of inlined functions come again and again. */
const CACHED_CHARACTERS = 1 << 20;

export function tableSource(table: SymbolTable): SymbolSource {
  return {
    lookup(address, range) {
      const symbol = table.lookup(address, range);
      return symbol ? [frameOf(symbol.name)] : [];
    },
    get byteLength() {
      return table.byteLength;
    },
  };
}

const frameOf = (name: string): SymbolFrame => ({
  function: name,
  systemName: name,
  file: '',
  line: 0,
  column: 0,
  inlined: false,
});

/**
 * The answer of the first source that has one. What it lacks of the outermost function (hand-written assembly has
 * lines and no functions; static C++ functions may have no mangled name), the next sources supply.
 */
export function sourceWithFallback(sources: readonly SymbolSource[]): SymbolSource {
  // an entry's own bytes, and never 0: there are frames without a name
  const weigh = (readable: string, name: string): number => readable.length + name.length + 64;
  const names = new RecentMap<string, string>(CACHED_CHARACTERS, weigh);
  const readName = (name: string): string => {
    const known = names.get(name);
    if (known !== undefined) return known;
    const readable = demangle(name);
    names.set(name, readable);
    return readable;
  };
  return {
    lookup: (address, range) => lookupIn(sources, address, readName, range),
    get damaged() {
      return sources.reduce((sum, source) => sum + (source.damaged ?? 0), 0);
    },
    get byteLength() {
      // most names have one byte a character
      return sources.reduce((sum, source) => sum + source.byteLength, names.weight);
    },
  };
}

function lookupIn(
  sources: readonly SymbolSource[],
  address: number,
  readName: (name: string) => string,
  range: AddressRange | undefined,
): SymbolFrame[] {
  let best: SymbolFrame[] = [];
  for (const source of sources) {
    if (best.length === 0) best = source.lookup(address, range);
    else complete(best.at(-1)!, source.lookup(address, range).at(-1));
    const outermost = best.at(-1);
    if (outermost?.function && outermost.systemName && !isShared(outermost.systemName)) break;
  }
  for (const [i, frame] of best.entries()) {
    frame.systemName ||= frame.function;
    const readable = readName(frame.systemName);
    if (readable !== frame.systemName) frame.function = readable;
    if (frame.scope) best[i] = inScope(frame, readable === frame.systemName);
  }
  // lines without a function name nothing
  return best.length === 1 && !best[0]!.function ? [] : best;
}

/** `isPlain`: its name does not say the scope. */
function inScope({ scope, ...frame }: SymbolFrame, isPlain: boolean): SymbolFrame {
  return isPlain ? { ...frame, function: `${scope}::${frame.function}` } : frame;
}

function complete(outermost: SymbolFrame, other: SymbolFrame | undefined): void {
  if (!other) return;
  if (isShared(outermost.systemName) && isCopyOf(other.systemName, outermost.systemName))
    outermost.systemName = other.systemName;
  outermost.systemName ||= other.systemName;
  outermost.function ||= other.function;
}

/** What gcc's copies of a constructor or destructor have in common; symbols are named C1, C2, D0, D1 or D2. */
const isShared = (name: string): boolean => /[CD]4[EI]/.test(name);
const isCopyOf = (copy: string, shared: string): boolean =>
  copy.length === shared.length && copy.replaceAll(/([CD])[0-5](?=[EI])/g, '$14') === shared;
