/** Addresses that have the same answer as the one that was asked for: what each part of a look-up leaves of all. */
export class AddressRange {
  /** ELF virtual addresses, `end` excluded. */
  start = 0;
  end = Number.MAX_SAFE_INTEGER;

  contains(address: number): boolean {
    return address >= this.start && address < this.end;
  }

  narrow(start: number, end: number): void {
    if (start > this.start) this.start = start;
    if (end < this.end) this.end = end;
  }

  /** To this address: of others nothing is known. */
  narrowTo(address: number): void {
    this.narrow(address, address + 1);
  }
}
