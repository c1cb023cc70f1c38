import { expect, it } from 'vitest';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { emptyPart } from './database-part.ts';
import { OpenParts } from './open-parts.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);

it('is full once what few rows refer to is large, until that is written', () => {
  let nextId = 1;
  const limits = { maxAgeMs: 3_600_000, now: () => NOW_MS };
  const parts = new OpenParts((startMs) => emptyPart(nextId++, startMs), limits);
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
