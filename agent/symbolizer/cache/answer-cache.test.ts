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
import type { NamedRange, SymbolFrame } from '../../../common/symbols/source.ts';
import type { Probe } from '../../files/file-pool.ts';
import { AnswerCache, Answers } from './answer-cache.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'everyframe-answers-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const chain = (name: string): SymbolFrame[] => [
  { function: name, systemName: `_${name}`, file: '/a.c', line: 3, column: 1, inlined: false },
];
const rangeAt = (start: number, frames: SymbolFrame[]): NamedRange => ({ frames, start, end: start + 8 });
const PROBES: Probe[] = [
  { where: 'host', path: '/usr/lib/debug/x', identity: '' },
  { where: 'root', path: '/build/a.dwo', identity: '1:2:3:4' },
];
const asBefore = (where: string, path: string): string =>
  PROBES.find((probe) => probe.where === where && probe.path === path)!.identity;

function answersOf(count: number, probes: readonly Probe[] | undefined = PROBES): Answers {
  const answers = new Answers();
  for (let i = 0; i < count; i++) answers.add(i * 16, rangeAt(i * 16, chain(`f${i}`)));
  answers.missing.add('abcd');
  answers.dependOn(probes);
  return answers;
}
const files = (): string[] => readdirSync(directory).map((name) => join(directory, name));

test('what was saved is loaded, for the same key alone', () => {
  const answers = answersOf(20);
  answers.add(9, rangeAt(8, []));
  new AnswerCache(directory).save('key', answers);
  const cache = new AnswerCache(directory);
  const loaded = cache.load('key', asBefore);
  expect([...loaded.ranges.entries()]).toEqual([...answers.ranges.entries()]);
  expect(loaded.ranges.get(19)?.frames[0]?.function).toBe('f1');
  expect(loaded).toMatchObject({ missing: new Set(['abcd']), probes: PROBES, saved: 21 });
  expect(cache.load('other', asBefore).ranges.size).toBe(0);
  expect(statSync(files()[0]!).mode & 0o777).toBe(0o600);
});

test('nothing is believed when a file that it depends on came, went or changed', () => {
  const cache = new AnswerCache(directory);
  cache.save('key', answersOf(20));
  for (const changed of PROBES) {
    const identify = (where: string, path: string) =>
      path === changed.path ? '9:9:9:9' : asBefore(where, path);
    expect(cache.load('key', identify).ranges.size).toBe(0);
  }
  expect(
    cache.load('key', (where, path) => (where === 'root' ? '' : asBefore(where, path))).ranges.size,
  ).toBe(0);
  expect(cache.load('key', asBefore).ranges.size).toBe(20);
});

test('a file that is damaged, of another version or of others counts as none', () => {
  const cache = new AnswerCache(directory);
  cache.save('key', answersOf(20, []));
  const [path] = files();
  const good = readFileSync(path!);
  fc.assert(
    fc.property(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), (at, mask) => {
      const bytes = Buffer.from(good);
      bytes[at]! ^= mask;
      writeFileSync(path!, bytes);
      expect(cache.load('key', asBefore).ranges.size).toBe(0);
    }),
    { numRuns: 100 },
  );
  for (const bytes of [good.subarray(0, -1), good.subarray(0, 10), Buffer.alloc(0), Buffer.alloc(9 << 20)]) {
    writeFileSync(path!, bytes);
    expect(cache.load('key', asBefore).ranges.size).toBe(0);
  }
  writeFileSync(path!, good);
  expect(cache.load('key', asBefore).ranges.size).toBe(20);
  chmodSync(path!, 0o666);
  expect(cache.load('key', asBefore).ranges.size).toBe(0);
});

test('it is written when a quarter is new, and not where nobody knows what the names depend on', () => {
  const cache = new AnswerCache(directory);
  cache.save('few', answersOf(3));
  const unknown = answersOf(100);
  unknown.dependOn(undefined);
  cache.save('unknown', unknown);
  const many = Array.from({ length: 65 }, (_, i) => ({ ...PROBES[0]!, path: `${i}` }));
  cache.save('many', answersOf(100, many));
  expect(files()).toEqual([]);
  const answers = answersOf(100);
  cache.save('key', answers);
  for (let i = 0; i < 24; i++) answers.add(100_000 + 8 * i, rangeAt(100_000 + 8 * i, chain('late')));
  cache.save('key', answers);
  expect(cache.load('key', asBefore).ranges.size).toBe(100);
  answers.add(200_000, rangeAt(200_000, chain('last')));
  cache.save('key', answers);
  expect(cache.load('key', asBefore).ranges.size).toBe(125);
});

test('at the end what another thread has written stays, unless a path led to something else then', () => {
  const cache = new AnswerCache(directory);
  cache.saveAll('key', answersOf(20));
  const mine = new Answers();
  mine.add(900_000, rangeAt(900_000, chain('mine')));
  mine.dependOn(PROBES);
  cache.saveAll('key', mine);
  expect(cache.load('key', asBefore).ranges.size).toBe(21);
  const later = new Answers();
  later.add(900_000, rangeAt(900_000, chain('later')));
  later.dependOn([{ ...PROBES[0]!, identity: '5:6:7:8' }]);
  cache.saveAll('key', later);
  expect(cache.load('key', () => '5:6:7:8').ranges.size).toBe(1);
});

test('at the end it is written whatever is new', () => {
  const cache = new AnswerCache(directory);
  const answers = answersOf(3);
  cache.saveAll('key', answers);
  expect(cache.load('key', asBefore).ranges.size).toBe(3);
  rmSync(files()[0]!);
  cache.saveAll('key', answers);
  expect(files()).toEqual([]);
});

test('what was used longest ago leaves when there is too much', () => {
  for (const key of ['old', 'new']) new AnswerCache(directory).save(key, answersOf(50, []));
  const size = statSync(files()[0]!).size;
  const cache = new AnswerCache(directory, 2.5 * size);
  const long = Date.now() / 1000 - 1000;
  for (const path of files()) utimesSync(path, long, long);
  expect(cache.load('new', asBefore).ranges.size).toBe(50);
  cache.save('third', answersOf(50, []));
  expect(files()).toHaveLength(3);
  new AnswerCache(directory, 1.5 * size).save('fourth', answersOf(50, []));
  expect(cache.load('old', asBefore).ranges.size).toBe(0);
});

test('a directory that others may write to is refused', () => {
  chmodSync(directory, 0o777);
  expect(() => new AnswerCache(directory)).toThrow(/others may write/);
});
