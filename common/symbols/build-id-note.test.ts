import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findGnuBuildId } from './build-id-note.ts';

function note(name: string, type: number, bytes: number[]): Buffer {
  const padded = (b: Buffer) => Buffer.concat([b, Buffer.alloc((4 - (b.length % 4)) % 4)]);
  const header = Buffer.alloc(12);
  header.writeUInt32LE(name.length + 1, 0);
  header.writeUInt32LE(bytes.length, 4);
  header.writeUInt32LE(type, 8);
  return Buffer.concat([header, padded(Buffer.from(`${name}\0`)), padded(Buffer.from(bytes))]);
}

test('the build ID is found behind other notes', () => {
  const notes = [note('Xen', 3, [1, 2, 3]), note('GNU', 1, [9]), note('GNU', 3, [0xab, 0x01, 0xff])];
  expect(findGnuBuildId(Buffer.concat(notes))).toBe('ab01ff');
  expect(findGnuBuildId(Buffer.concat(notes.slice(0, 2)))).toBe('');
});

test('any bytes are survived', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void findGnuBuildId(bytes)));
  expect(findGnuBuildId(note('GNU', 3, [1, 2, 3, 4]).subarray(0, 18))).toBe('');
});

test.skipIf(!existsSync('/sys/kernel/notes'))("this kernel's build ID", () => {
  const printed = execFileSync('od', ['-An', '-v', '-tx1', '/sys/kernel/notes'], { encoding: 'latin1' });
  const found = findGnuBuildId(readFileSync('/sys/kernel/notes'));
  expect(found).toMatch(/^[0-9a-f]{16,}$/);
  expect(printed.replace(/\s/g, '')).toContain(`47 4e 55 00`.replaceAll(' ', '') + found);
});
