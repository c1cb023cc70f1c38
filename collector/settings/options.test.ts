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
  'NAME=FILE': 'shop=/token',
  'NAME=LENGTH': 'shop=7d',
};

it('knows each flag of the table, and no other', () => {
  for (const { flag, value, repeatable } of COLLECTOR_SETTINGS) {
    const given = value === undefined ? true : (GIVEN[value] ?? 'x');
    const others = flag === 'tenant-max-age' ? { tenant: ['shop=/token'] } : {};
    const parsed = parseCollectorSettings({
      ...others,
      [settingName(flag)]: repeatable ? [given] : given,
    });
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

const TENANTS = { tenant: ['shop=/etc/shop.token', 'bank=/etc/a=b.token'] };

it('reads tenants with their tokens and ages', () => {
  expect(parseCollectorSettings({ ...TENANTS, tenantMaxAge: ['bank=90d'] })).toMatchObject({
    tenant: [
      { name: 'shop', tokenFile: '/etc/shop.token' },
      { name: 'bank', tokenFile: '/etc/a=b.token' },
    ],
    tenantMaxAge: [{ name: 'bank', maxAgeMs: 90 * 86_400_000 }],
  });
});

it.each([
  [{ tenant: ['Shop=/t'] }, /--tenant is "Shop=\/t": give NAME=FILE/],
  [{ tenant: ['shop'] }, /--tenant is "shop": give NAME=FILE/],
  [{ tenant: ['../x=/t'] }, /--tenant is/],
  [{ tenant: ['shop=/t', 'shop=/u'] }, /--tenant shop is given twice/],
  [{ ...TENANTS, tenantMaxAge: ['shop=soon'] }, /--tenant-max-age is "shop=soon": give NAME=LENGTH/],
  [{ ...TENANTS, tenantMaxAge: ['shp=7d'] }, /--tenant-max-age shp: no --tenant has that name/],
  [{ ...TENANTS, tokenFile: '/t' }, /--token-file: each --tenant has a token of its own/],
  [{ ...TENANTS, forwardTo: 'h:1' }, /--forward-to: it would mix/],
  [{ ...TENANTS, source: ['/s'] }, /--source: it would show these files to all tenants/],
  [{ ...TENANTS, maxMemory: '20MiB' }, /--max-memory is 20 MiB for 2 tenants: give 32MiB or more/],
  [{ ...TENANTS, data: '/d', maxDisk: '20MiB' }, /--max-disk is 20 MiB for 2 tenants/],
  [
    { tenant: Array.from({ length: 65 }, (_, i) => `t${i}=/t`), maxMemory: '4GiB' },
    /--tenant is given 65 times: one collector serves up to 64/,
  ],
])('refuses %j', (flags, reason) => {
  expect(() => parseCollectorSettings(flags)).toThrow(reason);
});
