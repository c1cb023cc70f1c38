/**
 * HTTP proxies, by the variables that every program knows. grpc-js reads them itself, in lower case only; for OTLP over HTTP
 * they are read here, by the same rules.
 */
import { BlockList, isIP } from 'node:net';

export type Environment = Record<string, string | undefined>;

const NAMES = ['http_proxy', 'https_proxy', 'no_proxy'];

/** Makes the variables that are set in upper case visible to grpc-js, and passwords that it throws at readable to it. */
export function adoptProxyVariables(env: Environment): void {
  for (const name of NAMES) {
    const upper = env[name.toUpperCase()];
    if (env[name] === undefined && upper !== undefined) env[name] = upper;
  }
  for (const name of ['grpc_proxy', ...NAMES]) {
    const value = env[name];
    if (value !== undefined && unescaped(value) === undefined) env[name] = value.replaceAll('%', '%25');
  }
}

/** Undefined where a "%" in it stands for itself, as in a password that was written down as it is. */
export function unescaped(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The proxy for a URL; undefined: none, or one that is not an http:// URL, which nothing here can speak to. */
export function proxyFor(url: URL, env: Environment): URL | undefined {
  const read = (name: string): string => env[name] || env[name.toUpperCase()] || '';
  const text = read(url.protocol === 'https:' ? 'https_proxy' : 'http_proxy');
  if (text === '' || isExempt(url, read('no_proxy'))) return undefined;
  const full = text.includes('://') ? text : `http://${text}`;
  const proxy = URL.canParse(full) ? new URL(full) : undefined;
  return proxy?.protocol === 'http:' ? proxy : undefined;
}

/** `*`, names and their sub-domains, addresses, and networks (10.0.0.0/8), after commas or blanks. */
export function isExempt(url: URL, list: string): boolean {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (host === 'localhost' || isLoopbackAddress(host)) return true;
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => entry !== '' && matches(entry, host, url.port));
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  const [, network = '', bits] = /^([0-9a-f.:]+)\/(\d{1,3})$/.exec(entry) ?? [];
  if (bits !== undefined) return isInNetwork(host, network, Number(bits));
  const [, name = entry, entryPort] = /^(\[.*\]|[^:]+):(\d+)$/.exec(entry) ?? [];
  if (entryPort !== undefined && entryPort !== port) return false;
  const bare = name.replace(/^\[(.*)\]$/, '$1').replace(/^\*?\./, '');
  return host === bare || host.endsWith(`.${bare}`);
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

function isInNetwork(host: string, network: string, bits: number): boolean {
  const family = familyOf(network);
  const isWhole = isIP(host) !== 0 && isIP(network) !== 0 && bits <= (family === 'ipv4' ? 32 : 128);
  if (!isWhole || familyOf(host) !== family) return false;
  const list = new BlockList();
  list.addSubnet(network, bits, family);
  return list.check(host, family);
}

const isLoopbackAddress = (host: string): boolean => host === '::1' || isInNetwork(host, '127.0.0.0', 8);
