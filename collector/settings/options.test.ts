import { expect, it } from 'vitest';
import { settingName } from '../../common/base/setting.ts';
import { COLLECTOR_SETTINGS, parseCollectorSettings, RUN_SETTINGS } from './options.ts';

it('has the defaults of the table', () => {
  expect(parseCollectorSettings({})).toMatchObject({
    grpcListen: '127.0.0.1:11000',
    pageListen: '127.0.0.1:11080',
    maxMemory: 256 * 2 ** 20,
    maxDisk: 10 * 2 ** 30,
    maxSenderRate: 32 * 2 ** 20,
    maxForwardQueue: 64 * 2 ** 20,
    source: [],
    allowAnyone: false,
  });
});

/** By how a value is called. */
const GIVEN: Readonly<Record<string, string>> = {
  SIZE: '1GiB',
  LENGTH: '2h',
  URL: 'http://h/{trace_id}',
  otlp: 'otlp',
};

it('knows each flag of the table, and no other', () => {
  for (const { flag, value, repeatable } of COLLECTOR_SETTINGS) {
    const given = value === undefined ? true : (GIVEN[value] ?? 'x');
    const parsed = parseCollectorSettings({ [settingName(flag)]: repeatable ? [given] : given });
    expect(parsed).toHaveProperty(settingName(flag));
  }
  expect(() => parseCollectorSettings({ maxMemry: '1GiB' })).toThrow(/maxMemry/);
});

it.each([
  ['512MiB', 512 * 2 ** 20],
  ['64m', 64 * 2 ** 20],
  ['1.5GB', 1.5 * 2 ** 30],
  ['33554432', 2 ** 25],
])('reads the size %s', (maxMemory, bytes) => {
  expect(parseCollectorSettings({ maxMemory }).maxMemory).toBe(bytes);
});

it.each(['', 'much', '12TB', '-1G', '1MiB'])('refuses the size "%s"', (maxDisk) => {
  expect(() => parseCollectorSettings({ maxDisk })).toThrow(
    `--max-disk is "${maxDisk}": give a size of 16MiB or more, such as 512MiB or 2GiB`,
  );
});

it('reads lengths of time, and refuses what is none', () => {
  const read = (maxAge: string) => parseCollectorSettings({ maxAge }).maxAge;
  expect([read('90m'), read('1.5h'), read('7d')]).toEqual([5_400_000, 5_400_000, 604_800_000]);
  for (const text of ['', '7', '30s', '0.5m', '1w', '-1h'])
    expect(() => read(text)).toThrow(`--max-age is "${text}": give a length of time such as 90m, 6h or 7d`);
});

it('takes ClickHouse from the environment, and one place for samples only', () => {
  const env = { EVERYFRAME_CLICKHOUSE: 'http://a:b@c:8123/d' };
  expect(parseCollectorSettings({}, { env }).clickhouse).toBe('http://a:b@c:8123/d');
  expect(parseCollectorSettings({ clickhouse: 'http://e' }, { env }).clickhouse).toBe('http://e');
  expect(() => parseCollectorSettings({ data: '/tmp/x' }, { env })).toThrow(/--data and --clickhouse/);
});

it('`run` has no flag that its collector could not have', () => {
  const flags = RUN_SETTINGS.map(({ flag }) => flag);
  expect(flags).not.toEqual(expect.arrayContaining(['clickhouse']));
  for (const flag of ['user', 'child', 'plain-loopback']) expect(flags).not.toContain(flag);
  expect(flags).toContain('source');
});
