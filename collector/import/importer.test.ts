/** With the real reader process: needs the compiled dist/. */
import { expect, it } from 'vitest';
import { Importer } from './importer.ts';

const BYTES = Buffer.from('p;main;f 3\n');
const OPTIONS = { fileName: 'a.folded', fallbackEndMs: Date.UTC(2026, 0, 1) };

function setUp() {
  const store = {
    appended: 0,
    isFull: false,
    busy: undefined,
    append: () => {
      store.appended++;
      return { stored: 3, rejected: new Map() };
    },
    commit: async () => {
      if (store.isFull) throw new Error('the disk is full');
    },
  };
  return { store, importer: new Importer(store, Date.now) };
}

it('stores a file once that is sent again before the answer', async () => {
  const { store, importer } = setUp();
  const send = () => importer.import(BYTES, OPTIONS);
  const results = await Promise.all([send(), send(), send()]);
  expect(results.map(({ samples, repeated }) => [samples, repeated])).toEqual([
    [3, false],
    [0, true],
    [0, true],
  ]);
  expect(await send()).toMatchObject({ samples: 0, repeated: true });
  expect(store.appended).toBe(1);
});

it('says of a file that is sent again as well that it is not written yet', async () => {
  const { store, importer } = setUp();
  store.isFull = true;
  const send = () => importer.import(BYTES, OPTIONS);
  await expect(send()).rejects.toThrow('a.folded is in memory');
  await expect(send()).rejects.toThrow('a.folded is in memory');
  store.isFull = false;
  expect(await send()).toMatchObject({ repeated: true });
  expect(store.appended).toBe(1);
});

it('reads two files at a time', async () => {
  const { importer } = setUp();
  const send = (n: number) => importer.import(BYTES, { ...OPTIONS, endMs: n });
  const first = [send(1), send(2)];
  await expect(send(3)).rejects.toThrow('other files are being imported');
  await Promise.all(first);
  expect(await send(3)).toMatchObject({ samples: 3 });
});
