import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { findScratchRoom, ScratchFile } from './scratch-file.ts';

function makeRoom() {
  const directory = mkdtempSync(join(import.meta.dirname, '.scratch-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return { directory, left: 100 };
}

test('bytes come back in parts, and the file has no name', () => {
  const room = makeRoom();
  const scratch = new ScratchFile(room);
  onTestFinished(() => scratch.close());
  const [first, second] = [scratch.store(Uint8Array.of(1, 2, 3)), scratch.store(Uint8Array.of(4, 5))];
  expect([...first.read(1, 2), ...second.read(0, 2)]).toEqual([2, 3, 4, 5]);
  expect(() => first.read(2, 2)).toThrow(OutOfBounds);
  expect(readdirSync(room.directory)).toEqual([]);
  expect([scratch.isOutside, room.left]).toEqual([true, 95]);
});

test('what exceeds the room stays in memory', () => {
  const room = makeRoom();
  const scratch = new ScratchFile(room);
  const kept = scratch.store(new Uint8Array(101).fill(7));
  expect([kept.read(100, 1)[0], scratch.isOutside, room.left]).toEqual([7, false, 100]);
  scratch.close();
});

test('a closed file gives its room back, and is not read', () => {
  const room = makeRoom();
  const scratch = new ScratchFile(room);
  const stored = scratch.store(new Uint8Array(60));
  scratch.close();
  expect(room.left).toBe(100);
  expect(() => stored.read(0, 1)).toThrow(OutOfBounds);
});

test('a directory that is not there is passed over', () => {
  const { directory } = makeRoom();
  expect(findScratchRoom(['/no/such/directory', directory])?.directory).toBe(directory);
});
