/** What one tenant has of a collector: its store, what fills it, and names for what is in it. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Forwarder } from '../forward/forwarder.ts';
import { Receiver } from '../ingest/receiver.ts';
import { COLLECTOR_DEFAULTS } from '../settings/options.ts';
import { SOLE_TENANT, type TenantAge } from '../settings/tenants.ts';
import type { Store } from '../store/store.ts';
import { SymbolSources } from '../symbols/symbol-sources.ts';
import { openStore, prepareData, type StoreOptions } from './open-store.ts';

export interface Tenant {
  /** Empty where the collector has no tenants. */
  name: string;
  store: Store;
  receiver: Receiver;
  symbols: SymbolSources;
}

export interface TenantOptions extends StoreOptions {
  /** Of tenants that do not have `maxAgeMs`. */
  tenantMaxAge?: readonly TenantAge[];
  /** Bytes of requests a second that one address may send. */
  maxSenderRate?: number;
  logger: Pick<Logger, 'info' | 'warn' | 'error'>;
}

/**
 * Opens a store for each.
 *
 * @throws CollectorStartError where one can't be opened; none stays open
 */
export async function openTenants(
  names: readonly string[],
  options: TenantOptions,
  now: () => number,
  forwarder: Forwarder | undefined,
): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  if (options.data && !names.includes(SOLE_TENANT)) await prepareData(options.data);
  try {
    for (const name of names)
      tenants.push(await openTenant(name, partFor(name, names.length, options), now, forwarder));
  } catch (error) {
    await closeTenants(tenants);
    throw error;
  }
  return tenants;
}

export async function closeTenants(tenants: readonly Tenant[]): Promise<void> {
  await Promise.all(
    tenants.map(async ({ symbols, store }) => {
      await symbols.close();
      await store.close();
    }),
  );
}

async function openTenant(
  name: string,
  options: TenantOptions,
  now: () => number,
  forwarder: Forwarder | undefined,
): Promise<Tenant> {
  const { logger, data, maxSenderRate = COLLECTOR_DEFAULTS.maxSenderRate } = options;
  const store = await openStore(options, now);
  return {
    name,
    store,
    receiver: new Receiver(store, now, logger, maxSenderRate, forwarder),
    symbols: new SymbolSources(data && join(data.directory, 'symbols'), logger),
  };
}

/** Of several, each has a place of its own and an equal part of the room. */
export function partFor(name: string, tenants: number, options: TenantOptions): TenantOptions {
  if (name === SOLE_TENANT) return options;
  const { data, clickhouse, maxMemoryBytes, maxAgeMs, tenantMaxAge = [] } = options;
  const part = (bytes: number): number => Math.floor(bytes / tenants);
  return {
    ...options,
    maxMemoryBytes: part(maxMemoryBytes),
    maxAgeMs: tenantMaxAge.find((age) => age.name === name)?.maxAgeMs ?? maxAgeMs,
    data: data && {
      ...data,
      directory: join(data.directory, `tenant-${name}`),
      maxBytes: part(data.maxBytes),
    },
    clickhouse: clickhouse === undefined ? undefined : databaseFor(name, clickhouse),
  };
}

/** ClickHouse's own default is the database of that name. */
function databaseFor(name: string, text: string): string {
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  const database = url.pathname.replace(/^\/+|\/+$/g, '') || 'default';
  url.pathname = `/${database}_${name}`;
  return url.href;
}
