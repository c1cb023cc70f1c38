import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { toFileKey } from '../../common/base/brand.ts';
import { FILE_ENTRY } from './records.gen.ts';
import { type TableImage, Tables } from './tables.ts';

const FILES = 1;
const TABLES = 2;
const table: TableImage = {
  image: new Uint8Array(16384),
  firstPage: 0,
  pageCount: 1,
  rulesAt: 8,
  rowsAt: 16,
};
const [A, B] = [toFileKey('00000000000000aa'), toFileKey('00000000000000bb')];

/** The maps, of which each change of a table ends when the test says so. */
class Maps {
  readonly files = new Map<string, Buffer>();
  readonly slots = new Set<number>();
  readonly waiting: (() => void)[] = [];

  installTable(_fd: number, slot: number): Promise<void> {
    return this.#later(() => this.slots.add(slot));
  }
  removeTable(_fd: number, slot: number): Promise<void> {
    return this.#later(() => this.slots.delete(slot));
  }
  mapUpdate(_fd: number, key: Buffer, value: Buffer): void {
    this.files.set(key.toString('hex'), value);
  }
  mapDelete(_fd: number, key: Buffer): boolean {
    return this.files.delete(key.toString('hex'));
  }
  mapLookup(_fd: number, key: Buffer): Buffer | undefined {
    return this.files.get(key.toString('hex'));
  }
  monotonicNs(): bigint {
    return 10n ** 12n;
  }
  #later(change: () => unknown): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(() => {
        change();
        resolve();
      });
    });
  }
}

it('keeps the table of a file that comes back while its old one goes, whatever thread ends first', async () => {
  const maps = new Maps();
  const object = { mapFd: (name: string) => (name === 'files' ? FILES : TABLES) };
  const samplers = { add: async () => false, mapFd: () => undefined };
  const tables = new Tables(maps, object, samplers, { maxTables: 8, maxBytes: 1 << 20 });
  let open = 0;
  const watch = async (change: Promise<void>): Promise<void> => {
    open++;
    await change.finally(() => open--);
  };
  const settle = async (): Promise<void> => {
    while (open > 0) {
      // the youngest first
      maps.waiting.pop()?.();
      await setImmediate();
    }
  };
  void watch(tables.install(A, table));
  await settle();
  void watch(tables.forget(A));
  void watch(tables.install(A, table));
  await settle();
  void watch(tables.install(B, table));
  await settle();
  const slots = [...maps.files.values()].map((entry) => entry.readUInt32LE(FILE_ENTRY.table));
  expect(new Set(slots)).toEqual(maps.slots);
  expect(slots).toHaveLength(2);
  expect(maps.slots.size).toBe(2);
  expect(tables).toMatchObject({ count: 2, bytes: 2 * 16384 });
});

it('drops the least used tables where the limit becomes smaller, in turn with other changes', async () => {
  const maps = new Maps();
  let now = 0n;
  maps.monotonicNs = () => ++now;
  const object = { mapFd: (name: string) => (name === 'files' ? FILES : TABLES) };
  const samplers = { add: async () => false, mapFd: () => undefined };
  const tables = new Tables(maps, object, samplers, { maxTables: 8, maxBytes: 8 * 16384 });
  const changes = [
    tables.install(A, table),
    tables.install(B, table),
    tables.install(toFileKey('00000000000000cc'), table),
    tables.limit(2 * 16384),
    // comes back
    tables.install(A, table),
  ];
  let left = changes.length;
  for (const change of changes) void change.finally(() => left--);
  while (left > 0) {
    maps.waiting.shift()?.();
    await setImmediate();
  }
  expect([...maps.files.keys()]).toContain('aa00000000000000');
  expect(tables).toMatchObject({ count: 2, bytes: 2 * 16384 });
  expect(maps.files.size).toBe(2);
  expect(maps.slots.size).toBe(2);
});
