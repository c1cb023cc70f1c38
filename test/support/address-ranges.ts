/** Checks what sources of names say of the addresses around one. */
import { AddressRange } from '../../common/symbols/address-range.ts';
import type { SymbolSource } from '../../common/symbols/source.ts';

/** Addresses that are looked up in each range, its ends included. */
const MAX_PROBES = 64;

/** Ranges in which another address has another answer, and how many addresses those at `addresses` cover. */
export function checkRanges(
  symbols: SymbolSource,
  addresses: readonly number[],
): { wrong: { address: number; other: number }[]; covered: number } {
  const wrong = [];
  let covered = 0;
  for (const address of addresses) {
    const range = new AddressRange();
    const expected = JSON.stringify(symbols.lookup(address, range));
    const { start, end } = range;
    if (address < start || address >= end) wrong.push({ address, other: address });
    covered += end - start;
    const step = Math.max(1, Math.floor((end - start) / MAX_PROBES));
    for (let other = start; other < end; other = other < end - 1 ? Math.min(other + step, end - 1) : end)
      if (JSON.stringify(symbols.lookup(other)) !== expected) wrong.push({ address, other });
  }
  return { wrong, covered };
}
