/**
 * Names of symbols, end to end in one array of bytes and decoded only when somebody asks: a table of 100,000
 * symbols costs its bytes, not 100,000 strings.
 */
const decoder = new TextDecoder();

export class NameColumn {
  #bytes: Uint8Array;
  #used = 0;

  constructor(capacity = 4096) {
    this.#bytes = new Uint8Array(capacity);
  }

  /** Bytes so far; the place of the next name. */
  get length(): number {
    return this.#used;
  }

  get byteLength(): number {
    return this.#bytes.byteLength;
  }

  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Copies `source[start, end)` and returns where it begins. */
  append(source: Uint8Array, start: number, end: number): number {
    const at = this.#used;
    const length = end - start;
    if (at + length > this.#bytes.length) this.#grow(at + length);
    // A copy of a few bytes is faster in a loop than with set(subarray()), which makes an object a name.
    const bytes = this.#bytes;
    for (let i = 0; i < length; i++) bytes[at + i] = source[start + i]!;
    this.#used = at + length;
    return at;
  }

  decode(start: number, end: number): string {
    return decoder.decode(this.#bytes.subarray(start, end));
  }

  /** Gives back what growing took in advance. */
  trim(): void {
    if (this.#used < this.#bytes.length) this.#bytes = this.#bytes.slice(0, this.#used);
  }

  #grow(needed: number): void {
    const bytes = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    bytes.set(this.#bytes.subarray(0, this.#used));
    this.#bytes = bytes;
  }
}

const UNDERSCORE = 0x5f;

/** How visible a symbol is; of two names for one address the higher one wins. */
export const BIND_LOCAL = 0;
export const BIND_WEAK = 1;
export const BIND_GLOBAL = 2;

export interface Alias {
  bind: number;
  bytes: Uint8Array;
  start: number;
  end: number;
}

/**
 * Negative where `a` is the better name of an address, positive where `b` is, 0 where they are equal.
 *
 * The name that people call comes first: exported before local, then without underscores in front, so that
 * glibc's weak `read` wins over its global `__read`; then global before weak, the shorter one, and at last byte
 * order, so that the choice never depends on the order of the table.
 */
export function compareAliases(a: Alias, b: Alias): number {
  const exported = Number(b.bind > BIND_LOCAL) - Number(a.bind > BIND_LOCAL);
  if (exported !== 0) return exported;
  const underscores = countUnderscores(a) - countUnderscores(b);
  if (underscores !== 0) return underscores;
  if (a.bind !== b.bind) return b.bind - a.bind;
  const length = a.end - a.start;
  const lengths = length - (b.end - b.start);
  if (lengths !== 0) return lengths;
  for (let i = 0; i < length; i++) {
    const difference = a.bytes[a.start + i]! - b.bytes[b.start + i]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

function countUnderscores(name: Alias): number {
  let at = name.start;
  while (at < name.end && name.bytes[at] === UNDERSCORE) at++;
  return at - name.start;
}
