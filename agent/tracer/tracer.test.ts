import { describe, expect, it } from 'vitest';
import { ringBytesFor } from './tracer.ts';

describe('the size of the ring buffer', () => {
  it.each([
    [20, 2, 256, 1 << 20],
    [97, 2, 256, 1 << 20],
    [997, 2, 256, 8 << 20],
    [20, 64, 256, 8 << 20],
    [97, 512, 256, 8 << 20],
    [97, 512, 900, 16 << 20],
    [97, 512, 4096, 32 << 20],
    [97, 512, 8, 1 << 20],
  ])('at %i samples a second on %i CPUs, with %i MiB in all', (samplesPerSecond, cpus, mib, bytes) => {
    expect(ringBytesFor(samplesPerSecond, cpus, mib * 2 ** 20)).toBe(bytes);
  });
});
