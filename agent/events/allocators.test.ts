import { expect, test } from 'vitest';
import { probesOfAllocator } from './allocators.ts';

test.each([
  ['malloc', ['on_malloc', 'on_allocated at return']],
  ['je_posix_memalign', ['on_posix_memalign', 'on_allocated at return']],
  ['free', ['on_free']],
  ['runtime.mallocgc', ['on_mallocgc']],
  ['_rjem_sdallocx', ['on_free']],
  ['_rjem_rallocx', ['on_realloc', 'on_allocated at return']],
  ['mi_malloc_aligned', ['on_malloc', 'on_allocated at return']],
  ['_Znwm', ['on_malloc', 'on_allocated at return']],
  ['_ZnamSt11align_val_tRKSt9nothrow_t', ['on_malloc', 'on_allocated at return']],
  ['_ZdaPvm', ['on_free']],
  ['_ZdlPvmSt11align_val_t', ['on_free']],
  ['cpython malloc', ['on_memalign', 'on_allocated at return']],
  ['cpython realloc', ['on_context_realloc', 'on_allocated at return']],
  ['cpython free', ['on_context_free']],
  ['xmalloc', []],
  ['_ZnwmPv', []],
])('%s', (name, probes) => {
  const found = probesOfAllocator(name).map(({ program, isAtReturn }) =>
    isAtReturn ? `${program} at return` : program,
  );
  expect(found).toEqual(probes);
});
