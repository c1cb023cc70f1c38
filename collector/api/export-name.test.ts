import { expect, it } from 'vitest';
import { parseFilter } from '../../common/profile/filters/filter.ts';
import { exportName } from './export-name.ts';

const time = { fromMs: Date.UTC(2026, 0, 31, 12), toMs: Date.UTC(2026, 0, 31, 12, 1) };

it.each([
  ['', false, 'everyframe-20260131T120000Z-60s.pb.gz'],
  ['process=node host!=db-1', false, 'everyframe-20260131T120000Z-60s-process=node-host=not-db-1.pb.gz'],
  [
    'frame~"^../etc/passwd$"',
    true,
    'everyframe-20260131T120000Z-60s-frame=like--..-etc-passwd-transformed.pb.gz',
  ],
  [`process="${'ä"x\\n'.replace('"', '\\"')}"`, false, 'everyframe-20260131T120000Z-60s-process=-xn.pb.gz'],
])('names a file by its time and by %s', (where, isTransformed, name) => {
  expect(exportName({ ...time, where: parseFilter(where) }, isTransformed, 'pb.gz')).toBe(name);
});

it('keeps the name of a long filter short', () => {
  const where = parseFilter(`process=${'x'.repeat(500)}`);
  expect(exportName({ ...time, where }, false, 'svg').length).toBeLessThan(120);
});
