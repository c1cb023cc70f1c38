import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BuildQueue } from './build-queue.ts';

const MB = 1_000_000;

/** The order in which files are built that come while another one is. */
async function orderOf(files: readonly { name: string; size: number; atMs: number }[]): Promise<string[]> {
  let now = 0;
  const built: string[] = [];
  const queue = new BuildQueue(
    (name) => name.startsWith('runtime'),
    () => now,
  );
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  queue.add({ name: 'under way', size: 1 }, () => gate);
  for (const { name, size, atMs } of files) {
    now = atMs;
    queue.add({ name, size }, async () => {
      await setImmediate();
      built.push(name);
    });
  }
  open();
  await queue.drained();
  return built;
}

it('takes runtimes first, in the order they came, and then small files before large ones', async () => {
  const files = [
    { name: 'large', size: 100 * MB, atMs: 0 },
    { name: 'small', size: MB, atMs: 0 },
    { name: 'runtime, large', size: 120 * MB, atMs: 5 },
    { name: 'runtime', size: 6 * MB, atMs: 9 },
    { name: 'tiny', size: 1000, atMs: 10 },
  ];
  expect(await orderOf(files)).toEqual(['runtime, large', 'runtime', 'tiny', 'small', 'large']);
});

it('looks at files before it builds one, also before those that came a little earlier', async () => {
  const built: string[] = [];
  const add = (what: string) => async () => {
    await setImmediate();
    built.push(what);
  };
  let now = 0;
  const queue = new BuildQueue(
    () => true,
    () => now,
  );
  for (const name of ['a', 'b', 'c']) {
    queue.addLook(add(`look at ${name}`));
    queue.add({ name, size: MB }, add(name));
    now += 100;
  }
  await queue.drained();
  expect(built).toEqual(['look at a', 'look at b', 'look at c', 'a', 'b', 'c']);
});

it('lets no large file wait for ever', async () => {
  const files = [{ name: 'large', size: 100 * MB, atMs: 0 }];
  for (let i = 1; i <= 50; i++) files.push({ name: `small ${i}`, size: 1000, atMs: i * 100 });
  const order = await orderOf(files);
  expect(order.indexOf('large')).toBe(19);
});

it('lets nothing wait for ever for files that are called like a runtime', async () => {
  const files = [{ name: 'small', size: 1000, atMs: 0 }];
  for (let i = 1; i <= 60; i++) files.push({ name: `runtime ${i}`, size: MB, atMs: i * 1000 });
  const order = await orderOf(files);
  expect(order.indexOf('small')).toBe(20);
});

it('builds each file once, one at a time', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(200 * MB), { maxLength: 40 }), async (sizes) => {
      const files = sizes.map((size, i) => ({ name: `${i % 7 ? '' : 'runtime '}${i}`, size, atMs: i }));
      const order = await orderOf(files);
      expect([...order].sort()).toEqual(files.map(({ name }) => name).sort());
    }),
  );
});

it('goes on with what comes after it had nothing to do', async () => {
  const queue = new BuildQueue(() => false);
  const built: number[] = [];
  for (let i = 0; i < 3; i++) {
    queue.add({ name: '', size: 1 }, async () => void built.push(i));
    await queue.drained();
  }
  expect(built).toEqual([0, 1, 2]);
});
