import { describe, expect, it } from 'vitest';
import type { ProcessMemory } from '../contract.ts';
import { Functions } from './functions.ts';
import { Heap } from './heap.ts';
import type { V8Layout } from './layout.ts';

const TYPES = { string: 8, shared: 288, script: 166, map: 278 };
const LAYOUT = {
  version: 1406,
  types: {
    shared: TYPES.shared,
    scopeInfo: 286,
    script: TYPES.script,
    bytecodeArray: 185,
    code: 186,
    firstNonString: 128,
    byteArrays: [196],
    fixedArrays: [197],
  },
  shared: { data: 8, name: 24, script: 40 },
  script: { name: 16, source: 8 },
} as unknown as V8Layout;
const BASE = 0x10000;

/** Memory of a process with objects that are written as their type and 8-byte words. */
class FakeMemory implements ProcessMemory {
  readonly #bytes = Buffer.alloc(1 << 16);
  #end = BASE;
  /** Bytes of the longest read that was asked for. */
  longest = 0;

  read(address: number, length: number): Uint8Array | undefined {
    this.longest = Math.max(this.longest, length);
    const at = address - BASE;
    return at >= 0 && at < this.#bytes.length ? this.#bytes.subarray(at, at + length) : undefined;
  }

  object(type: number, words: readonly number[]): number {
    const map = this.#reserve(16);
    this.#bytes.writeUInt16LE(type, map - BASE + 12);
    const at = this.#reserve(8 + words.length * 8);
    for (const [i, word] of [map + 1, ...words].entries()) this.word(at + i * 8, word);
    return at;
  }

  text(text: string): number {
    const at = this.object(TYPES.string, [0, ...Array.from({ length: Math.ceil(text.length / 8) }, () => 0)]);
    this.#bytes.writeUInt32LE(text.length, at - BASE + 12);
    this.#bytes.write(text, at - BASE + 16, 'latin1');
    return at;
  }

  /** A string that says to be of so many characters. */
  textOfLength(length: number): number {
    const at = this.text('a');
    this.#bytes.writeUInt32LE(length, at - BASE + 12);
    return at;
  }

  word(at: number, word: number): void {
    this.#bytes.writeBigUInt64LE(BigInt(word), at - BASE);
  }

  #reserve(bytes: number): number {
    const at = this.#end;
    this.#end += Math.ceil(bytes / 16) * 16;
    return at;
  }
}

describe('functions of V8', () => {
  it('keep their lines while the collector moves their source', () => {
    const memory = new FakeMemory();
    const functions = new Functions(new Heap(memory, LAYOUT));
    const source = memory.text('function a() {\n  b();\n}\n');
    const name = memory.text('/app/a.js');
    const script = memory.object(TYPES.script, [source + 1, name + 1]);
    const shared = memory.object(TYPES.shared, [0, 0, memory.text('a') + 1, 0, script + 1, 0, 0]);
    const lineOf = (): number => {
      const func = functions.read(shared);
      return typeof func === 'object' ? functions.frame(func, 17).line : -1;
    };

    expect(lineOf()).toBe(2);
    memory.word(source, 0xdead01);
    memory.word(script + 8, source + 16 + 1);
    expect(lineOf()).toBe(2);
    memory.word(script + 8, memory.text('\n\n\nfunction a() {\n b();\n}\n') + 1);
    expect(lineOf()).toBe(4);
  });

  it.each(['name', 'file'])('have no %s of a gigabyte, and it is not read', (part) => {
    const memory = new FakeMemory();
    const textOf = (one: string): number =>
      (one === part ? memory.textOfLength(2 ** 30) : memory.text(`the ${one}`)) + 1;
    const script = memory.object(TYPES.script, [textOf('source'), textOf('file')]);
    const shared = memory.object(TYPES.shared, [0, 0, textOf('name'), 0, script + 1, 0, 0]);
    const functions = new Functions(new Heap(memory, LAYOUT));
    const func = functions.read(shared);
    expect(typeof func === 'object' && functions.frame(func, 2)).toMatchObject({
      name: part === 'name' ? '<anonymous>' : 'the name',
      file: part === 'file' ? '' : 'the file',
    });
    expect(memory.longest).toBeLessThan(64 << 10);
  });

  it('have their lines from where the collector has just moved their source', () => {
    const memory = new FakeMemory();
    const source = memory.text('long gone');
    memory.word(source, memory.text('a\nb'));
    const script = memory.object(TYPES.script, [source + 1, memory.text('/app/a.js') + 1]);
    const shared = memory.object(TYPES.shared, [0, 0, memory.text('a') + 1, 0, script + 1, 0, 0]);
    const functions = new Functions(new Heap(memory, LAYOUT));
    const func = functions.read(shared);
    expect(typeof func === 'object' && functions.frame(func, 2).line).toBe(2);
  });

  it.each([
    ['a number', 0x1_0000_0000, true],
    ['an object', BASE + 1, false],
  ])(
    "are V8's own, without a line, where %s stands in place of their code and there is no script",
    (_, data, isOwn) => {
      const memory = new FakeMemory();
      const shared = memory.object(TYPES.shared, [data, 0, memory.text('map') + 1, 0, 0, 0, 0]);
      const functions = new Functions(new Heap(memory, LAYOUT));
      const func = functions.read(shared);
      expect(typeof func === 'object' && functions.frame(func, -1)).toMatchObject({
        name: 'map',
        line: 0,
        isPlaceless: isOwn,
      });
    },
  );

  it('keep no lines of another script that has come in its place', () => {
    const memory = new FakeMemory();
    const functions = new Functions(new Heap(memory, LAYOUT));
    const script = memory.object(TYPES.script, [memory.text('a\nb') + 1, memory.text('/app/a.js') + 1]);
    const shared = memory.object(TYPES.shared, [0, 0, memory.text('a') + 1, 0, script + 1, 0, 0]);
    const frame = () => {
      const func = functions.read(shared);
      return typeof func === 'object' ? functions.frame(func, 2) : undefined;
    };

    expect(frame()).toMatchObject({ file: '/app/a.js', line: 2 });
    memory.word(script + 8, 0);
    memory.word(script + 16, memory.text('/app/b.js') + 1);
    expect(frame()).toMatchObject({ file: '/app/b.js', line: 0 });
  });
});
