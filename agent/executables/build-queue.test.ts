import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BuildQueue } from './build-queue.ts';

const MB = 1_000_000;

interface Work {
  name: string;
  /** Of the file that is built; none: it is looked at. */
  size?: number;
  atMs: number;
}

/** The order in which work is done that comes while other work is. */
async function orderOf(works: readonly Work[]): Promise<string[]> {
  let now = 0;
  const done: string[] = [];
  const queue = new BuildQueue(() => now, 1);
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  queue.add(1, () => gate);
  for (const { name, size, atMs } of works) {
    now = atMs;
    const work = async (): Promise<void> => {
      await setImmediate();
      done.push(name);
    };
    if (size === undefined) queue.addLook(work);
    else queue.add(size, work);
  }
  open();
  await queue.drained();
  return done;
}

it('looks at files first, in the order they came, and then builds small ones before large ones', async () => {
  const works = [
    { name: 'large', size: 100 * MB, atMs: 0 },
    { name: 'small', size: MB, atMs: 0 },
    { name: 'look', atMs: 5 },
    { name: 'another look', atMs: 9 },
    { name: 'tiny', size: 1000, atMs: 10 },
  ];
  expect(await orderOf(works)).toEqual(['look', 'another look', 'tiny', 'small', 'large']);
});

it('lets no large file wait for ever', async () => {
  const works = [{ name: 'large', size: 100 * MB, atMs: 0 }];
  for (let i = 1; i <= 50; i++) works.push({ name: `small ${i}`, size: 1000, atMs: i * 100 });
  const order = await orderOf(works);
  expect(order.indexOf('large')).toBe(19);
});

it('lets nothing wait for ever for files that are looked at', async () => {
  const works: Work[] = [{ name: 'small', size: 1000, atMs: 0 }];
  for (let i = 1; i <= 60; i++) works.push({ name: `look ${i}`, atMs: i * 1000 });
  const order = await orderOf(works);
  expect(order.indexOf('small')).toBe(20);
});

it('does all work once, one at a time', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(fc.nat(200 * MB), { nil: undefined })), async (sizes) => {
      const works = sizes.map((size, i) => ({ name: `${i}`, ...(size !== undefined && { size }), atMs: i }));
      const order = await orderOf(works);
      expect([...order].sort()).toEqual(works.map(({ name }) => name).sort());
    }),
  );
});

it('goes on with what comes after it had nothing to do', async () => {
  const queue = new BuildQueue();
  const built: number[] = [];
  for (let i = 0; i < 3; i++) {
    queue.add(1, async () => void built.push(i));
    await queue.drained();
  }
  expect(built).toEqual([0, 1, 2]);
});
