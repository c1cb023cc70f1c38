import { setImmediate } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { type FileKey, toFileKey } from '../../common/base/brand.ts';
import { IdleTables, type TableUse } from './idle-tables.ts';

const SECOND = 1_000_000_000n;
const MIB = 1 << 20;
const key = (i: number): FileKey => toFileKey(i.toString(16).padStart(16, '0'));
const gone = async (): Promise<boolean> => false;

/** Times in seconds. */
function use(i: number, since: number, used: number, bytes = 16384): TableUse {
  return { key: key(i), bytes, sinceNs: BigInt(since) * SECOND, usedNs: BigInt(used) * SECOND };
}

async function leftBy(idle: IdleTables, tables: readonly TableUse[], atSeconds: number): Promise<FileKey[]> {
  const leaving = await idle.pick(tables, BigInt(atSeconds) * SECOND);
  return leaving.map((table) => table.key);
}

it('drops the table of a file that is gone after three minutes, after 75 s where it was never used again', async () => {
  const idle = new IdleTables(gone);
  const once = [use(1, 1000, 1000)];
  expect(await leftBy(idle, once, 1075)).toEqual([]);
  expect(await leftBy(idle, once, 1076)).toEqual([key(1)]);
  const often = [use(2, 1000, 1080)];
  expect(await leftBy(idle, often, 1260)).toEqual([]);
  expect(await leftBy(idle, often, 1261)).toEqual([key(2)]);
});

it('keeps that of a file that is there, and asks again after ten minutes', async () => {
  let isThere = true;
  const look = vi.fn(async () => isThere);
  const idle = new IdleTables(look);
  const tables = [use(1, 1000, 1000)];
  expect(await leftBy(idle, tables, 1030)).toEqual([]);
  expect(look).not.toHaveBeenCalled();
  expect(await leftBy(idle, tables, 1100)).toEqual([]);
  expect(idle.stats).toEqual({ idleKept: 1, idleKeptBytes: 16384 });
  isThere = false;
  expect(await leftBy(idle, tables, 1699)).toEqual([]);
  expect(look).toHaveBeenCalledTimes(1);
  expect(await leftBy(idle, tables, 1700)).toEqual([key(1)]);
  expect(idle.stats).toEqual({ idleKept: 0, idleKeptBytes: 0 });
});

it('keeps 8 MiB of them at most, those that were used last', async () => {
  const look = vi.fn(async () => true);
  const idle = new IdleTables(look);
  const tables = [use(1, 0, 10, 3 * MIB), use(2, 0, 20, 3 * MIB), use(3, 0, 30, 3 * MIB), use(4, 0, 40, MIB)];
  expect(await leftBy(idle, tables, 500)).toEqual([key(1)]);
  expect(idle.stats).toEqual({ idleKept: 3, idleKeptBytes: 7 * MIB });
  expect(look).toHaveBeenCalledTimes(3);
});

it('takes files for gone while a look does not end', async () => {
  let end = (_isThere: boolean): void => {};
  const look = vi.fn(() => new Promise<boolean>((resolve) => (end = resolve)));
  const idle = new IdleTables(look, 20);
  expect(await leftBy(idle, [use(1, 0, 10), use(2, 0, 20)], 500)).toEqual([key(2), key(1)]);
  expect(look).toHaveBeenCalledTimes(1);
  end(true);
  await setImmediate();
  look.mockImplementation(async () => true);
  expect(await leftBy(idle, [use(3, 0, 10)], 500)).toEqual([]);
});
