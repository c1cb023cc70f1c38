/** What `nm -S` says of a file's functions. */
import { execFileSync } from 'node:child_process';

interface NmSymbol {
  start: number;
  size: number;
  name: string;
}

const MAX_BYTES = 1 << 28;

export class NmSymbols {
  /** By start. */
  readonly all: readonly NmSymbol[];
  readonly #maxSize: number;

  constructor(path: string) {
    const text = execFileSync('nm', ['-S', '--defined-only', '--numeric-sort', path], {
      encoding: 'utf8',
      maxBuffer: MAX_BYTES,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    this.all = [...text.matchAll(/^([0-9a-f]{16}) ([0-9a-f]{16}) [tTwWi] (.*)$/gm)].map(
      ([, start, size, name]) => ({
        start: Number.parseInt(start!, 16),
        size: Number.parseInt(size!, 16),
        name: name!.replace(/@.*$/, ''),
      }),
    );
    this.#maxSize = this.all.reduce((most, { size }) => Math.max(most, size), 0);
  }

  /** Of all symbols inside of which the address lies. */
  namesAt(address: number): string[] {
    let [low, high] = [0, this.all.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.all[middle]!.start <= address) low = middle + 1;
      else high = middle;
    }
    const names: string[] = [];
    for (let i = low - 1; i >= 0 && address - this.all[i]!.start < this.#maxSize; i--) {
      const { start, size, name } = this.all[i]!;
      if (address - start < size) names.push(name);
    }
    return names;
  }
}
