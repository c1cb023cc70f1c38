/** Checks what sources of names say of the addresses around one. */
import { Extent } from '../../common/symbols/extent.ts';
import type { SymbolSource } from '../../common/symbols/source.ts';

/** Addresses that are looked up in each extent, its ends included. */
const MAX_PROBES = 64;

/** Extents in which another address has another answer, and how many addresses those at `addresses` cover. */
export function checkExtents(
  symbols: SymbolSource,
  addresses: readonly number[],
): { wrong: { address: number; other: number }[]; covered: number } {
  const wrong = [];
  let covered = 0;
  for (const address of addresses) {
    const extent = new Extent();
    const expected = JSON.stringify(symbols.lookup(address, extent));
    const { start, end } = extent;
    if (address < start || address >= end) wrong.push({ address, other: address });
    covered += end - start;
    const step = Math.max(1, Math.floor((end - start) / MAX_PROBES));
    for (let other = start; other < end; other = other < end - 1 ? Math.min(other + step, end - 1) : end)
      if (JSON.stringify(symbols.lookup(other)) !== expected) wrong.push({ address, other });
  }
  return { wrong, covered };
}
