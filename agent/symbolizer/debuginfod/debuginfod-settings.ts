import { join } from 'node:path';
import { BadSetting } from '../../../common/base/bad-setting.ts';
import { defaultCacheDirectory } from '../../files/cache-directory.ts';
import { DEBUGINFOD_DEFAULTS, type DebuginfodOptions } from './debuginfod.ts';

type Environment = Record<string, string | undefined>;

/** From the variables that elfutils' client knows. Throws {@link BadSetting}. */
export function debuginfodFromEnvironment(env: Environment): DebuginfodOptions {
  const urls = (env['DEBUGINFOD_URLS'] ?? '').split(/\s+/).filter((url) => url !== '');
  if (urls.length === 0)
    throw new BadSetting(
      '--debuginfod needs servers: set DEBUGINFOD_URLS, such as https://debuginfod.debian.net (with sudo: --preserve-env=DEBUGINFOD_URLS)',
    );
  for (const url of urls) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      throw new BadSetting(
        `DEBUGINFOD_URLS has "${url}": give http:// or https:// URLs, separated by spaces`,
      );
  }
  return {
    ...DEBUGINFOD_DEFAULTS,
    urls: urls.map((url) => url.replace(/\/+$/, '')),
    cache: join(defaultCacheDirectory(env), 'debuginfod'),
    maxFileBytes: numberFrom(env, 'DEBUGINFOD_MAXSIZE') ?? DEBUGINFOD_DEFAULTS.maxFileBytes,
    timeoutMs: (numberFrom(env, 'DEBUGINFOD_MAXTIME') ?? 0) * 1000 || DEBUGINFOD_DEFAULTS.timeoutMs,
  };
}

function numberFrom(env: Environment, name: string): number | undefined {
  const text = env[name];
  if (!text) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new BadSetting(`${name} is "${text}": give a whole number`);
  return Number(text) || undefined;
}
