import { expect, test } from 'vitest';
import { probesOfAllocator } from './allocators.ts';

test.each([
  ['malloc', ['on_malloc', 'on_allocated at return']],
  ['je_posix_memalign', ['on_posix_memalign', 'on_allocated at return']],
  ['free', ['on_free']],
  ['runtime.mallocgc', ['on_mallocgc']],
  ['xmalloc', []],
])('%s', (name, probes) => {
  const found = probesOfAllocator(name).map(({ program, isAtReturn }) =>
    isAtReturn ? `${program} at return` : program,
  );
  expect(found).toEqual(probes);
});
