import { expect, test } from 'vitest';
import { kernelFileId } from './kernel-file-id.ts';

// Oracle: an independent FNV-1a-128, `functools.reduce(lambda h, c: ((h ^ c) * (2**88 + 0x13b)) % 2**128, …)`.
test('the file ID of a kernel is FNV-1a-128 of its build ID in hex', () => {
  expect(kernelFileId('4a5a9b0affb66c437abcd455d2738af879985fa9')).toBe('f99945f128008c497a95ba7df2d509b6');
  expect(kernelFileId('0123456789abcdef')).toBe('901bd20a6f66c128ded2e362959c587d');
});

test('a build ID that is too short to be one has no file ID', () => {
  expect(kernelFileId('')).toBe('');
  expect(kernelFileId('0123456789abcde')).toBe('');
});
