import { expect, it } from 'vitest';
import { formatOf } from './export-file.ts';

it('knows formats by the endings of files', () => {
  expect(formatOf('a/b.pb.gz')).toBe('pprof');
  expect(formatOf('x.speedscope.json')).toBe('speedscope');
  expect(formatOf('x.html')).toBe('html');
  expect(() => formatOf('x.json')).toThrow(/--format/);
});
