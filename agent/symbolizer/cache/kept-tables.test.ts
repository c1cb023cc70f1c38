import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TableStore } from './kept-tables.ts';
import { findScratchRoom, ScratchFile } from './scratch-file.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'everyframe-tables-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const kept = (): string[] =>
  readdirSync(join(directory, 'symbols')).map((name) => join(directory, 'symbols', name));

function run<T>(key: string, use: (scratch: ScratchFile) => T, store = new TableStore(directory)): T {
  const scratch = new ScratchFile(findScratchRoom([])!, store.open(key));
  try {
    return use(scratch);
  } finally {
    scratch.close();
  }
}

/** The bytes under each name that a later run finds. */
const found = (key: string, ...names: string[]): (number[] | undefined)[] =>
  run(key, (scratch) =>
    names.map((name) => {
      const part = scratch.find(name);
      return part && [...part.read(0, part.size)];
    }),
  );

test('what has a name is found by later runs, for the same key alone, and more is added to it', () => {
  run('key', (scratch) => {
    scratch.store(Uint8Array.of(1, 2, 3), 'a');
    scratch.store(Uint8Array.of(9));
    scratch.store(new Uint8Array(0), 'empty');
    expect(scratch.find('a')?.read(1, 2)).toEqual(Uint8Array.of(2, 3));
  });
  expect(found('key', 'a', 'empty', 'b')).toEqual([[1, 2, 3], [], undefined]);
  expect(found('other', 'a')).toEqual([undefined]);
  run('key', (scratch) => scratch.store(Uint8Array.of(4), 'b'));
  expect(found('key', 'a', 'empty', 'b')).toEqual([[1, 2, 3], [], [4]]);
  expect(kept().length).toBe(1);
});

test('nothing is written where nothing is new', () => {
  run('key', (scratch) => scratch.store(Uint8Array.of(1), 'a'));
  rmSync(kept()[0]!);
  run('key', (scratch) => scratch.store(Uint8Array.of(1)));
  expect(kept()).toEqual([]);
});

test('whatever byte is changed or missing: what is found is right', () => {
  const parts = { a: [1, 2, 3, 4], b: Array.from({ length: 40 }, (_, i) => i) };
  run('key', (scratch) => {
    for (const [name, bytes] of Object.entries(parts)) scratch.store(Uint8Array.from(bytes), name);
  });
  const [path] = kept() as [string];
  const whole = readFileSync(path);
  const isRight = (): boolean => {
    const [a, b] = found('key', 'a', 'b');
    return (!a || `${a}` === `${parts.a}`) && (!b || `${b}` === `${parts.b}`);
  };
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const bytes = Buffer.from(whole);
      bytes[at]! ^= change;
      writeFileSync(path, bytes);
      expect(isRight()).toBe(true);
      writeFileSync(path, whole.subarray(0, at));
      expect(isRight()).toBe(true);
    }),
  );
  // of what is damaged the rest holds, and it is made anew
  whole[whole.length - 1]! ^= 1;
  writeFileSync(path, whole);
  expect(found('key', 'a', 'b')).toEqual([parts.a, undefined]);
  run('key', (scratch) => scratch.store(Uint8Array.from(parts.b), 'b'));
  expect(found('key', 'a', 'b')).toEqual([parts.a, parts.b]);
});

test('a file that others may write to is not believed', () => {
  run('key', (scratch) => scratch.store(Uint8Array.of(1), 'a'));
  chmodSync(kept()[0]!, 0o622);
  expect(found('key', 'a')).toEqual([undefined]);
});

test('of all files those that were used longest ago leave', () => {
  for (const key of ['first', 'second']) run(key, (scratch) => scratch.store(new Uint8Array(1000), 'a'));
  for (const path of kept()) utimesSync(path, 1, 1);
  expect(found('first', 'a')[0]?.length).toBe(1000);
  const small = new TableStore(directory, 1500);
  run('third', (scratch) => scratch.store(new Uint8Array(1000), 'a'), small);
  expect(['first', 'second', 'third'].map((key) => found(key, 'a')[0]?.length)).toEqual([
    1000,
    undefined,
    1000,
  ]);
});

test('where the scratch has no room left, nothing is handed on', () => {
  const room = { directory, left: 10 };
  const scratch = new ScratchFile(room, new TableStore(directory).open('key'));
  scratch.store(new Uint8Array(11), 'a');
  scratch.close();
  expect(found('key', 'a')).toEqual([undefined]);
});
