/**
 * The best name that a file's sources have for an address. Sources stand best first: DWARF, then symbol tables.
 */
import { demangle } from './demangle/demangle.ts';
import type { SymbolFrame, SymbolSource } from './source.ts';
import type { SymbolTable } from './symbol-table.ts';

export function tableSource(table: SymbolTable): SymbolSource {
  return {
    lookup(address) {
      const symbol = table.lookup(address);
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
export function symbolLadder(sources: readonly SymbolSource[]): SymbolSource {
  return {
    lookup: (address) => lookupIn(sources, address),
    get byteLength() {
      return sources.reduce((sum, source) => sum + source.byteLength, 0);
    },
  };
}

function lookupIn(sources: readonly SymbolSource[], address: number): SymbolFrame[] {
  let best: SymbolFrame[] = [];
  for (const source of sources) {
    if (best.length === 0) best = source.lookup(address);
    else complete(best.at(-1)!, source, address);
    const outermost = best.at(-1);
    if (outermost?.function && outermost.systemName) break;
  }
  for (const frame of best) {
    frame.systemName ||= frame.function;
    const readable = demangle(frame.systemName);
    if (readable !== frame.systemName) frame.function = readable;
  }
  // lines without a function name nothing
  return best.length === 1 && !best[0]!.function ? [] : best;
}

function complete(outermost: SymbolFrame, source: SymbolSource, address: number): void {
  const other = source.lookup(address).at(-1);
  if (!other) return;
  outermost.systemName ||= other.systemName;
  outermost.function ||= other.function;
}
