import { expect, it } from 'vitest';
import { profileFromText } from '../../../test/browser/synthetic-profile.ts';
import { emptyPart, type PartInfo } from './database-part.ts';
import { OpenParts, type PartDatabase } from './open-parts.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);

it('is full once what few rows refer to is large, until that is written', () => {
  let nextId = 1;
  const limits = { maxAgeMs: 3_600_000, now: () => NOW_MS };
  const parts = new OpenParts(
    { begin: (startMs, type) => emptyPart(nextId++, startMs, type), types: () => new Set() },
    limits,
  );
  let profiles = 0;
  while (!parts.isFull && profiles < 100) {
    const profile = profileFromText('p:1;a@n 1', { endMs: NOW_MS, spanMs: 1 });
    profile.samples[0]!.threadName = `${profiles++} ${'x'.repeat(2 ** 20)}`;
    parts.append(profile);
  }
  expect(profiles).toBeGreaterThan(50);
  expect(profiles).toBeLessThan(100);
  parts.noteWritten(parts.takeFlush());
  expect(parts.isFull).toBe(false);
});

it('closes the part of an hour that is over once nothing comes any more', () => {
  const begunMs = NOW_MS + 600_000;
  let nowMs = begunMs;
  const limits = { maxAgeMs: 48 * 3_600_000, now: () => nowMs };
  const infos: PartInfo[] = [];
  const begin: PartDatabase['begin'] = (startMs, type) => {
    infos.push(emptyPart(infos.length, startMs, type));
    return infos.at(-1)!;
  };
  const parts = new OpenParts({ begin, types: () => new Set() }, limits);
  const append = (endMs: number): void => {
    parts.append(profileFromText('p:1;a@n 1', { endMs, spanMs: 1 }));
    parts.noteWritten(parts.takeFlush());
    parts.closeOld();
  };
  append(begunMs);
  nowMs += 3_600_000;
  append(begunMs + 1);
  expect(parts.find(infos[0]!)).toBeDefined();
  nowMs += 6 * 60_000;
  append(nowMs);
  expect(parts.find(infos[0]!)).toBeUndefined();
  nowMs += 6 * 60_000;
  parts.closeOld();
  expect(parts.find(infos[1]!)).toBeDefined();
});
