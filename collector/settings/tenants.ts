/** Those whom one collector serves apart from each other: each has a token, samples and a page of its own. */
import * as v from 'valibot';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { parseAge } from './age.ts';

/** The name of whom a collector serves that has no tenants. */
export const SOLE_TENANT = '';

/** Each has a store of its own. */
const MAX_TENANTS = 64;
/** What a store needs. */
const MIN_STORE_MIB = 16;

/** Also a part of the name of a directory, and of a database. */
const NAME = '[a-z][a-z0-9_]{0,31}';

export interface TenantToken {
  name: string;
  tokenFile: string;
}

export interface TenantAge {
  name: string;
  maxAgeMs: number;
}

/** `NAME=VALUE`; undefined for what is not of this form. */
function readPair(text: string): [name: string, value: string] | undefined {
  const [, name, value] = new RegExp(`^(${NAME})=(.+)$`, 's').exec(text) ?? [];
  return name === undefined ? undefined : [name, value!];
}

/** A name is small letters, digits and underscores. */
export const tenantToken = v.pipe(
  v.string(),
  v.check(
    (text) => readPair(text) !== undefined,
    ({ input }) =>
      `--tenant is "${input}": give NAME=FILE, a name of up to 32 small letters, digits and _, and the file with its token, such as shop=/etc/everyframe/shop.token`,
  ),
  v.transform((text): TenantToken => {
    const [name, tokenFile] = readPair(text)!;
    return { name, tokenFile };
  }),
);

export const tenantAge = v.pipe(
  v.string(),
  v.check(
    (text) => parseAge(readPair(text)?.[1] ?? '') > 0,
    ({ input }) =>
      `--tenant-max-age is "${input}": give NAME=LENGTH, a tenant's name and a length of time, such as shop=7d`,
  ),
  v.transform((text): TenantAge => {
    const [name, length] = readPair(text)!;
    return { name, maxAgeMs: parseAge(length) };
  }),
);

interface Settings {
  tenant: readonly TenantToken[];
  tenantMaxAge: readonly TenantAge[];
  tokenFile?: string | undefined;
  forwardTo?: string | undefined;
  source: readonly string[];
  data?: string | undefined;
  clickhouse?: string | undefined;
  maxMemory: number;
  maxDisk: number;
}

/** @throws BadSetting where tenants and other settings contradict each other */
export function checkTenants(settings: Settings): void {
  const { tenant, tenantMaxAge } = settings;
  const names = tenant.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw new BadSetting(`--tenant ${twice} is given twice: give each its own name`);
  const unknown = tenantMaxAge.find(({ name }) => !names.includes(name));
  if (unknown) throw new BadSetting(`--tenant-max-age ${unknown.name}: no --tenant has that name`);
  if (names.length === 0) return;
  if (names.length > MAX_TENANTS)
    throw new BadSetting(
      `--tenant is given ${names.length} times: one collector serves up to ${MAX_TENANTS}`,
    );
  if (settings.tokenFile !== undefined)
    throw new BadSetting('--token-file: each --tenant has a token of its own; leave it out, or the tenants');
  if (settings.forwardTo !== undefined)
    throw new BadSetting("--forward-to: it would mix tenants' profiles; have agents send to both instead");
  if (settings.source.length > 0)
    throw new BadSetting('--source: it would show these files to all tenants; leave it out, or the tenants');
  checkRoom(settings, names.length);
}

/** In equal shares. */
function checkRoom({ data, clickhouse, maxDisk, maxMemory }: Settings, tenants: number): void {
  if (clickhouse !== undefined) return;
  const [flag, bytes] = data === undefined ? ['max-memory', maxMemory] : ['max-disk', maxDisk];
  const [mib, needed] = [bytes / 2 ** 20, tenants * MIN_STORE_MIB];
  if (mib < needed)
    throw new BadSetting(
      `--${flag} is ${Math.floor(mib)} MiB for ${tenants} tenants: give ${needed}MiB or more`,
    );
}
