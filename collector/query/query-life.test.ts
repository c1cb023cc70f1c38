import { expect, it } from 'vitest';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import type { Store } from '../store/store.ts';
import { QueryLives } from './query-life.ts';
import { readValues } from './values.ts';

const all = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, where: [] };
const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now: Date.now });
store.append(profileFromText('p:1;a@n 5', { endMs: Date.now(), spanMs: 1000 }));
const ask = (from: Pick<Store, 'parts' | 'stats'>) => readValues(from, all, 'process');

it('answers as without', async () => {
  expect(await new QueryLives().run(store, () => true, ask)).toEqual(await ask(store));
});

it('ends a query that takes too long, and one for which nobody waits', async () => {
  const late = new QueryLives(-1).run(store, () => true, ask);
  await expect(late).rejects.toThrow('ask for a shorter time');
  await expect(new QueryLives().run(store, () => false, ask)).rejects.toThrow('nobody waits');
});

it('answers no more than so many at a time', async () => {
  const lives = new QueryLives();
  const gates: (() => void)[] = [];
  const held = Array.from({ length: 32 }, () =>
    lives.run(
      store,
      () => true,
      () => new Promise<void>((resolve) => gates.push(resolve)),
    ),
  );
  await expect(lives.run(store, () => true, ask)).rejects.toThrow('32 questions are being answered');
  for (const open of gates) open();
  await Promise.all(held);
  await lives.run(store, () => true, ask);
});
