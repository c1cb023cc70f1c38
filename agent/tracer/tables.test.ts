import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { toFileKey } from '../../common/base/brand.ts';
import type { DetectedRuntime } from '../interpreters/contract.ts';
import { FILE_ENTRY, FileState, Runtime } from '../records/records.gen.ts';
import { RUNTIMES as PLUGINS } from '../runtimes/runtimes.gen.ts';
import { IdleTables } from './idle-tables.ts';
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
const object = { mapFd: (name: string) => (name === 'files' ? FILES : TABLES) };
const noSamplers = { add: async () => false, mapFd: () => undefined };
const [A, B] = [toFileKey('00000000000000aa'), toFileKey('00000000000000bb')];

/** The maps, of which each change of a table ends when the test says so. */
class Maps {
  readonly files = new Map<string, Buffer>();
  readonly slots = new Set<number>();
  readonly waiting: (() => void)[] = [];
  removals = 0;

  installTable(_fd: number, slot: number): Promise<void> {
    return this.#later(() => this.slots.add(slot));
  }
  removeTables(_fd: number, slots: Uint32Array): Promise<void> {
    this.removals++;
    return this.#later(() => {
      for (const slot of slots) this.slots.delete(slot);
    });
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
  /** Lets what waits go on, the oldest first, until `change` is done. */
  async finish(change: Promise<unknown>): Promise<void> {
    let isDone = false;
    void change.finally(() => {
      isDone = true;
    });
    while (!isDone) {
      this.waiting.shift()?.();
      await setImmediate();
    }
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
  const tables = new Tables(maps, object, noSamplers, { maxTables: 8, maxBytes: 1 << 20, runtimes: PLUGINS });
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
  const tables = new Tables(maps, object, noSamplers, {
    maxTables: 8,
    maxBytes: 8 * 16384,
    runtimes: PLUGINS,
  });
  const changes = [
    tables.install(A, table),
    tables.install(B, table),
    tables.install(toFileKey('00000000000000cc'), table),
    tables.limit(2 * 16384),
    // comes back
    tables.install(A, table),
  ];
  await maps.finish(Promise.all(changes));
  expect([...maps.files.keys()]).toContain('aa00000000000000');
  expect(tables).toMatchObject({ count: 2, bytes: 2 * 16384 });
  expect(maps.files.size).toBe(2);
  expect(maps.slots.size).toBe(2);
});

it('drops many tables in one go, and some more than it has to where a new one needs room', async () => {
  const maps = new Maps();
  let now = 0n;
  maps.monotonicNs = () => ++now;
  const tables = new Tables(maps, object, noSamplers, {
    maxTables: 64,
    maxBytes: 64 * 16384,
    runtimes: PLUGINS,
  });
  const key = (i: number) => toFileKey(`00000000000000${i.toString(16).padStart(2, '0')}`);
  for (let i = 16; i < 80; i++) await maps.finish(tables.install(key(i), table));
  expect(tables.count).toBe(64);
  await maps.finish(tables.install(A, table));
  expect([tables.count, maps.removals]).toEqual([60, 1]);
  await maps.finish(tables.limit(16 * 16384));
  expect([tables.count, maps.removals, tables.stats.evicted]).toEqual([16, 2, 49]);
  expect(maps.slots.size).toBe(16);
});

it('takes a table back whose entry can not be written', async () => {
  const maps = new Maps();
  maps.mapUpdate = () => {
    throw new Error('the map of files is full');
  };
  const tables = new Tables(maps, object, noSamplers, { maxTables: 8, maxBytes: 1 << 20, runtimes: PLUGINS });
  const failing = expect(tables.install(A, table)).rejects.toThrow('the map of files is full');
  await maps.finish(failing);
  expect(maps.slots.size).toBe(0);
  expect(tables).toMatchObject({ count: 0, bytes: 0, stats: { failed: 1 } });
});

describe('a runtime in a file whose table is still being made', () => {
  const RUNTIMES = 3;
  const runtime: DetectedRuntime = { runtime: 'v8', version: '1', facts: {}, entry: new Uint8Array(8) };
  const stateOf = (maps: Maps) => {
    const entry = maps.files.get('aa00000000000000')!;
    return [entry.readUInt32LE(FILE_ENTRY.state), entry.readUInt32LE(FILE_ENTRY.runtime)];
  };
  /** As BPF does when it meets the file, and a sampler that is wider once `load` was called. */
  function meet() {
    const maps = new Maps();
    const pending = Buffer.alloc(FILE_ENTRY.bytes);
    pending.writeUInt32LE(FileState.PENDING, FILE_ENTRY.state);
    maps.files.set('aa00000000000000', pending);
    const values = new Map<string, Buffer>();
    const update = maps.mapUpdate.bind(maps);
    const writes: number[] = [];
    maps.mapUpdate = (fd: number, key: Buffer, value: Buffer) => {
      if (fd === RUNTIMES) values.set(key.toString('hex'), value);
      else update(fd, key, value);
      if (fd === FILES) writes.push(value.readUInt32LE(FILE_ENTRY.runtime));
    };
    let load = () => {};
    let isLoaded = false;
    const loading = new Promise<boolean>((resolve) => {
      load = () => {
        isLoaded = true;
        resolve(true);
      };
    });
    const samplers = { add: () => loading, mapFd: () => (isLoaded ? RUNTIMES : undefined) };
    const tables = new Tables(maps, object, samplers, { maxTables: 8, maxBytes: 1 << 20, runtimes: PLUGINS });
    return { maps, tables, load, values, writes };
  }

  it('is published at once, and stays when the table comes', async () => {
    const { maps, tables, load, values, writes } = meet();
    const announced = tables.announce(A, runtime);
    load();
    await announced;
    expect(stateOf(maps)).toEqual([FileState.PENDING, Runtime.V8]);
    expect([...values.keys()]).toEqual(['aa00000000000000']);
    const installed = tables.install(A, table, runtime);
    await setImmediate();
    maps.waiting.shift()!();
    await installed;
    expect(stateOf(maps)).toEqual([FileState.TABLE, Runtime.V8]);
    // no sample in between finds the file without it
    expect(writes).toEqual([Runtime.V8, Runtime.V8]);
  });

  it('does not undo a table that was sooner', async () => {
    const { maps, tables, load } = meet();
    const announced = tables.announce(A, runtime);
    const installed = tables.install(A, table, runtime);
    await setImmediate();
    maps.waiting.shift()!();
    await installed;
    expect(stateOf(maps)).toEqual([FileState.TABLE, Runtime.NONE]);
    load();
    await announced;
    await setImmediate();
    expect(stateOf(maps)).toEqual([FileState.TABLE, Runtime.V8]);
  });

  it('is not published for a file that was dropped meanwhile', async () => {
    const { maps, tables, load, values } = meet();
    const announced = tables.announce(A, runtime);
    await tables.forget(A);
    load();
    await announced;
    expect(maps.files.size + values.size).toBe(0);
  });
});

it('drops idle tables, but none that a sample needed meanwhile', async () => {
  const maps = new Maps();
  const tables = new Tables(maps, object, noSamplers, { maxTables: 8, maxBytes: 1 << 20, runtimes: PLUGINS });
  await maps.finish(tables.install(A, table));
  await maps.finish(tables.install(B, table));
  maps.monotonicNs = () => 2n * 10n ** 12n;
  const idle = new IdleTables(async (key) => {
    // as BPF writes it
    if (key === B)
      maps.files.get('bb00000000000000')!.writeBigUInt64LE(2n * 10n ** 12n, FILE_ENTRY.lastUsedNs);
    return false;
  });
  await maps.finish(tables.dropIdle(idle, () => false));
  expect([...maps.files.keys()]).toEqual(['bb00000000000000']);
  expect(tables.stats.idle).toBe(1);
});
