/** For tests: the memory of a .NET that was never there. */
import type { ProcessMemory } from '../contract.ts';

export const BASE = 0x7f00_0000_0000;
const BYTES = 1 << 20;

export class FakeClr implements ProcessMemory {
  readonly bytes = Buffer.alloc(BYTES);
  #end = 64;

  read(address: number, length: number): Uint8Array | undefined {
    const at = address - BASE;
    return at >= 0 && at < BYTES ? this.bytes.subarray(at, at + length) : undefined;
  }

  reserve(bytes: number): number {
    const at = this.#end;
    this.#end = (at + bytes + 15) & ~15;
    if (this.#end > BYTES) throw new Error('the made .NET is full');
    return BASE + at;
  }

  word(address: number, value: number): void {
    this.bytes.writeBigUInt64LE(BigInt(value), address - BASE);
  }

  int(address: number, value: number): void {
    this.bytes.writeUInt32LE(value, address - BASE);
  }

  put(bytes: Uint8Array): number {
    const address = this.reserve(bytes.length);
    this.bytes.set(bytes, address - BASE);
    return address;
  }

  /** A contract descriptor that says what is given. */
  describe(text: string, pointers: readonly number[]): number {
    const json = this.put(Buffer.from(text));
    const list = this.reserve(pointers.length * 8 + 8);
    for (const [i, pointer] of pointers.entries()) this.word(list + i * 8, pointer);
    const header = this.reserve(40);
    this.bytes.write('DNCCDAC\0', header - BASE, 'latin1');
    this.int(header + 8, 1);
    this.int(header + 12, Buffer.byteLength(text));
    this.word(header + 16, json);
    this.int(header + 24, pointers.length);
    this.word(header + 32, list);
    return header;
  }

  /** The map of sections with one section, at the address's own 128 KiB. */
  section(address: number, words: readonly number[]): number {
    const section = this.reserve(128);
    for (const [i, word] of words.entries()) this.word(section + i * 8, word);
    let node = this.reserve(32);
    this.word(node + 8, words[0]!);
    this.word(node + 16, words[1]!);
    this.word(node + 24, section);
    for (let unit = 2 ** 17; unit <= 2 ** 49; unit *= 256) {
      const level = this.reserve(2048);
      // a mark, as of code that may be unloaded
      this.word(level + (Math.floor(address / unit) % 256) * 8, node + 1);
      node = level;
    }
    return node;
  }
}
