/** Settings that are read again while the collector serves: certificate and tokens, from their files too. */
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Collector } from '../../collector/main.ts';
import type { CollectorSettings } from '../../collector/settings/options.ts';
import { flagOf } from '../../common/base/setting.ts';

const LIVE = ['tlsCert', 'tlsKey', 'tokenFile', 'tenant'] as const;

/** What holds from now on. Where the new settings are wrong the old ones stay. */
export async function reloadCollector(
  current: CollectorSettings,
  read: () => Promise<{ settings: CollectorSettings; notes: readonly string[] }>,
  collector: Pick<Collector, 'renewAccess'>,
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
): Promise<CollectorSettings> {
  try {
    const { settings, notes } = await read();
    for (const note of notes) log.warn(note);
    const names = Object.keys({ ...current, ...settings }) as (keyof CollectorSettings)[];
    const later = names.filter(
      (name) => !LIVE.some((live) => live === name) && !isDeepStrictEqual(current[name], settings[name]),
    );
    const { tlsCert, tlsKey, tokenFile, tenant } = settings;
    const isTaken = collector.renewAccess({ tlsCert, tlsKey, tokenFile, tenant });
    const taken = LIVE.filter((name) => [settings[name] ?? []].flat().length > 0).map(flagOf);
    if (isTaken)
      log.info(
        `settings were read again: ${taken.length > 0 ? `${taken.join(', ')} hold for new connections` : 'none can change while it runs'}`,
      );
    else later.push(...LIVE.filter((name) => !isDeepStrictEqual(current[name], settings[name])));
    if (later.length > 0) log.warn(`${later.map(flagOf).join(', ')}: restart for what changed there`);
    return isTaken ? { ...current, tlsCert, tlsKey, tokenFile, tenant } : current;
  } catch (error) {
    log.error(`settings stay as they were: ${(error as Error).message}`);
    return current;
  }
}
