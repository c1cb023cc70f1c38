import { describe, expect, it } from 'vitest';
import { ringBytesFor } from './tracer.ts';

describe('the size of the ring buffer', () => {
  it.each([
    [20, 2, 1 << 20],
    [97, 2, 1 << 20],
    [997, 2, 8 << 20],
    [20, 64, 8 << 20],
    [97, 512, 32 << 20],
  ])('at %i samples a second on %i CPUs', (samplesPerSecond, cpus, bytes) => {
    expect(ringBytesFor(samplesPerSecond, cpus)).toBe(bytes);
  });
});
