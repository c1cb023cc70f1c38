import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { PAGE, RULE } from '../../records/records.gen.ts';
import { buildTable, type UnwindTable } from './build-table.ts';
import { checkTable } from './check-table.ts';
import { findPackedRule, type PackedTable } from './pack.ts';
import { TableCache } from './table-cache.ts';

const built = buildTable(bufferSource(readFileSync('/bin/sh')));
if (built.kind !== 'built' || !built.executable.table) throw new Error('/bin/sh has no table');
const { machine, badFdes } = built.executable;
const table = built.executable.table;
const unwind: UnwindTable = { table, badFdes, usesSeparate: false };

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'table-cache-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));
const files = (): string[] =>
  readdirSync(join(directory, 'tables')).map((name) => join(directory, 'tables', name));

test('gives back what was saved, under its key alone', () => {
  const cache = new TableCache(directory);
  expect(cache.save('key', { ...unwind, badFdes: 3 })).toBe(true);
  expect(cache.load('key', machine)).toEqual({ kind: 'found', unwind: { ...unwind, badFdes: 3 } });
  expect(cache.load('other', machine)).toEqual({ kind: 'missing' });
  // put there under another key
  const [path] = files();
  cache.save('other', unwind);
  writeFileSync(files().find((name) => name !== path)!, readFileSync(path!));
  expect(cache.load('other', machine)).toEqual({ kind: 'damaged' });
});

test('no damage goes unnoticed', () => {
  const cache = new TableCache(directory);
  cache.save('key', unwind);
  const [path] = files();
  const good = readFileSync(path!);
  fc.assert(
    fc.property(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), (at, mask) => {
      const bytes = Buffer.from(good);
      bytes[at]! ^= mask;
      writeFileSync(path!, bytes);
      expect(cache.load('key', machine).kind).not.toBe('found');
    }),
    { numRuns: 100 },
  );
  for (const bytes of [
    good.subarray(0, -1),
    good.subarray(0, 100),
    Buffer.alloc(0),
    Buffer.alloc(70 << 20),
  ]) {
    writeFileSync(path!, bytes);
    expect(cache.load('key', machine).kind).not.toBe('found');
  }
  writeFileSync(path!, good);
  expect(cache.load('key', machine).kind).toBe('found');
  chmodSync(path!, 0o666);
  expect(cache.load('key', machine)).toEqual({ kind: 'missing' });
});

test('a lie with a right checksum is found out', () => {
  const cache = new TableCache(directory);
  cache.save('key', unwind);
  const [path] = files();
  const good = readFileSync(path!);
  const bodyAt = good.indexOf('\n') + 1;
  const rowsAt = bodyAt + 28 + table.rowsAt;
  good.writeUInt32LE(0xffff_0000, rowsAt);
  const sum = createHash('sha256').update('key\0').update(good.subarray(bodyAt)).digest('hex');
  const line = good.toString('latin1', 0, bodyAt).replace(/[0-9a-f]{64}/, sum);
  writeFileSync(path!, Buffer.concat([Buffer.from(line), good.subarray(bodyAt)]));
  expect(cache.load('key', machine)).toEqual({ kind: 'damaged' });
});

test('what was used longest ago leaves when there is too much', () => {
  new TableCache(directory).save('0', unwind);
  const { size } = statSync(files()[0]!);
  const cache = new TableCache(directory, size * 8);
  for (let i = 1; i < 40; i++) {
    cache.save(`${i}`, unwind);
    // the first one is asked for again and again
    expect(cache.load('0', machine).kind).toBe('found');
    const old = new Date(Date.now() - 1_000_000 + i * 1000);
    for (const path of files()) if (statSync(path).mtimeMs > Date.now() - 500_000) utimesSync(path, old, old);
  }
  expect(files().length).toBeLessThanOrEqual(8);
  expect(files().length).toBeGreaterThan(4);
  expect(cache.load('39', machine).kind).toBe('found');
  expect(cache.load('2', machine).kind).toBe('missing');
});

test('a directory that others may write to is refused', () => {
  new TableCache(directory);
  chmodSync(join(directory, 'tables'), 0o777);
  expect(() => new TableCache(directory)).toThrow(/others may write/);
});

test('what has no table, or rules of another file, is not kept', () => {
  const cache = new TableCache(directory);
  expect(cache.save('key', { ...unwind, table: undefined })).toBe(false);
  expect(cache.save('key', { ...unwind, usesSeparate: true })).toBe(false);
  expect(files()).toEqual([]);
});

/** A table as BPF would read it, every page's start and end. */
function readEverywhere(other: PackedTable): void {
  for (let page = other.firstPage; page < other.firstPage + other.pageCount; page++)
    for (const low of [0, 1, 2048, 4095])
      expect(findPackedRule(other, page * 4096 + low)).toBeLessThan(other.ruleCount);
}

test('a table that passes the check can be read everywhere, whatever is in it', () => {
  const small = table.image.slice(0);
  fc.assert(
    fc.property(
      fc.nat(table.rowsAt + table.rowCount * 4 - 1),
      fc.integer({ min: 1, max: 255 }),
      (at, mask) => {
        small.set(table.image);
        small[at]! ^= mask;
        const other = { ...table, image: small };
        if (checkTable(other, machine) === '') readEverywhere(other);
      },
    ),
    { numRuns: 300 },
  );
});

test.each<[string, (other: PackedTable, view: DataView) => void]>([
  ['not whole blocks', (t) => Object.assign(t, { image: t.image.subarray(1) })],
  ['pages', (t) => Object.assign(t, { pageCount: 0 })],
  ['rules', (t) => Object.assign(t, { ruleCount: 0 })],
  ['a count is none', (t) => Object.assign(t, { rowsAt: -1 })],
  ['in the directory', (t) => Object.assign(t, { rulesAt: 0 })],
  ['do not follow', (t) => Object.assign(t, { rowsAt: t.rowsAt + 16 })],
  ['past the end', (t) => Object.assign(t, { rowCount: 1 << 22 })],
  ['rule 0', (t, view) => view.setUint8(t.rulesAt, 1)],
  ['of kind 99', (t, view) => view.setUint8(t.rulesAt + RULE.bytes, 99)],
  ['unknown register', (t, view) => view.setUint8(t.rulesAt + RULE.bytes + RULE.cfaReg, 77)],
  ['unknown value', (t, view) => view.setUint8(t.rulesAt + RULE.bytes + RULE.fpKind, 9)],
  ['not there', (_table, view) => view.setUint32(2 * PAGE.bytes + PAGE.firstRow, 1 << 30, true)],
])('a table is refused: %s', (why, spoil) => {
  const other = { ...table, image: table.image.slice() };
  expect(checkTable(other, machine)).toBe('');
  spoil(other, new DataView(other.image.buffer));
  expect(checkTable(other, machine)).toContain(why);
});
