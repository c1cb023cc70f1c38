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

it('tries once more when it is closed while a write fails, and says what is lost', async () => {
  let fail = (): void => {};
  let writes = 0;
  const errors: string[] = [];
  const start = (isMended: boolean): Flusher =>
    new Flusher({
      gapMs: 0,
      write: () => {
        if (writes++ > 0 && isMended) return Promise.resolve();
        return new Promise((_, reject) => (fail = () => reject(new Error('no room'))));
      },
      tidy: async () => {},
      logger: { info: () => {}, error: (_: object, message?: string) => errors.push(message ?? '') },
    });
  const mended = start(true);
  void mended.flush();
  await expect.poll(() => writes).toBe(1);
  const closing = mended.close();
  fail();
  await closing;
  expect(writes).toBe(2);
  expect(errors).toEqual(['samples could not be written: trying again']);
  const broken = start(false);
  const closed = broken.close();
  await expect.poll(() => writes).toBe(3);
  fail();
  await closed;
  expect(errors.at(-1)).toBe('what was not written yet is lost');
});
