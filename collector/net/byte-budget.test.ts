import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ByteBudget, OverBudget } from './byte-budget.ts';
import { BadBody, gather, TooLarge, TooSlow } from './gather.ts';

it('lets small requests pass when a large one fills the memory', () => {
  const budget = new ByteBudget(100);
  const [large, small] = [budget.lease(), budget.lease()];
  const lost: Error[] = [];
  large.whenRevoked((error) => lost.push(error));
  large.grow(90);
  small.grow(20);
  expect(lost).toEqual([expect.any(OverBudget)]);
  expect(budget.stats()).toEqual({ maxBytes: 100, bytes: 20, peakBytes: 90, refused: 1 });
  expect(() => large.grow(1)).toThrow(OverBudget);
});

it('takes nothing from a request that has arrived, nor from one that is smaller', () => {
  const budget = new ByteBudget(100);
  const [stored, arriving, asking] = [budget.lease(), budget.lease(), budget.lease()];
  stored.grow(60);
  arriving.whenRevoked(() => expect.fail('taken from the smaller one'));
  arriving.grow(10);
  expect(() => asking.grow(50)).toThrow(OverBudget);
  stored.end();
  asking.grow(50);
  expect(budget.stats().bytes).toBe(60);
});

it('counts what is held, whatever happens', () => {
  const steps = fc.array(fc.tuple(fc.nat(4), fc.constantFrom('grow', 'end'), fc.nat(70)), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (each) => {
      const budget = new ByteBudget(100);
      const leases = Array.from({ length: 5 }, () => budget.lease());
      for (const lease of leases) lease.whenRevoked(() => {});
      for (const [i, what, bytes] of each) {
        try {
          if (what === 'end') leases[i]!.end();
          else leases[i]!.grow(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(OverBudget);
        }
        const held = leases.reduce((sum, lease) => sum + lease.bytes, 0);
        expect(budget.stats().bytes).toBe(held);
        expect(held).toBeLessThanOrEqual(100);
      }
    }),
  );
});

const leaseOf = (maxBytes = 2 ** 20) => new ByteBudget(maxBytes).lease();

it('gathers a request, plain and compressed, however it is cut', async () => {
  const bytes = fc.uint8Array({ maxLength: 40_000 });
  await fc.assert(
    fc.asyncProperty(bytes, fc.integer({ min: 1, max: 9000 }), fc.boolean(), async (body, step, gzip) => {
      const sent = gzip ? gzipSync(body) : Buffer.from(body);
      const chunks: Buffer[] = [];
      for (let at = 0; at < sent.length; at += step) chunks.push(sent.subarray(at, at + step));
      const lease = leaseOf();
      const got = await gather(Readable.from(chunks), { lease, maxBytes: 40_000, gzip });
      expect(got.equals(body)).toBe(true);
      expect(lease.bytes).toBeGreaterThanOrEqual(got.length);
    }),
    { numRuns: 50 },
  );
});

it('says what is wrong with a request', async () => {
  const zeros = Buffer.alloc(100_000);
  const get = (body: Buffer, gzip: boolean, maxBytes = 50_000, lease = leaseOf()) =>
    gather(Readable.from([body]), { lease, maxBytes, gzip });
  await expect(get(zeros, false)).rejects.toThrow(TooLarge);
  await expect(get(gzipSync(zeros), true)).rejects.toThrow(TooLarge);
  await expect(get(gzipSync(zeros).subarray(0, 60), true)).rejects.toThrow(BadBody);
  await expect(get(zeros, true)).rejects.toThrow(BadBody);
  await expect(get(zeros, false, 200_000, leaseOf(50_000))).rejects.toThrow(OverBudget);
  const silent = new Readable({ read: () => {} });
  const slow = gather(silent, { lease: leaseOf(), maxBytes: 10, gzip: false, maxArrivalMs: 1 });
  await expect(slow).rejects.toThrow(TooSlow);
});
