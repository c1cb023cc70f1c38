import { expect, it } from 'vitest';
import { Flusher } from './flusher.ts';

it('writes once for all that ask while a slow write is under way', async () => {
  const gates: (() => void)[] = [];
  const flusher = new Flusher({
    gapMs: 0,
    write: () => new Promise((resolve) => gates.push(resolve)),
    tidy: async () => {},
    logger: { info: () => {}, error: (...what: unknown[]) => expect.fail(JSON.stringify(what)) },
  });
  const asked = Array.from({ length: 20 }, () => flusher.flush());
  await expect.poll(() => gates.length).toBe(1);
  const later = Array.from({ length: 20 }, () => flusher.flush());
  gates[0]!();
  await Promise.all(asked);
  await expect.poll(() => gates.length).toBe(2);
  gates[1]!();
  await Promise.all(later);
  expect(gates).toHaveLength(2);
  const closing = flusher.close();
  await expect.poll(() => gates.length).toBe(3);
  gates[2]!();
  await closing;
});
