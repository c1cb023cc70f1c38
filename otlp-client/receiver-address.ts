/**
 * Where a receiver is, in the forms that gRPC's name syntax (grpc/grpc, doc/naming.md) and the OTLP exporter
 * specification (opentelemetry-specification, protocol/exporter.md) have.
 */
import { isIPv6 } from 'node:net';
import { BadSetting } from '../common/base/bad-setting.ts';

export interface ReceiverAddress {
  /** What gRPC dials: `host:port`, `[ipv6]:port`, `unix:PATH`, `dns:///host:port`, `ipv4:…`, `ipv6:…`. */
  target: string;
  scheme: 'http' | 'https' | undefined;
  /** `host:port` of one that has no list of addresses. */
  authority: string | undefined;
  /** From the first slash on, where a URL has one. */
  path: string | undefined;
  socketPath: string | undefined;
}

const HOST = /^[\w.-]+$/;
const PORTS = { http: '80', https: '443' };
const EXAMPLES = 'collector.example:4317, [::1]:4317, https://collector.example or unix:/run/otlp.sock';

/** @param where flag or variable that says so, for the message */
export function parseReceiver(text: string, where: string): ReceiverAddress {
  const trimmed = text.trim();
  const address = parseUnix(trimmed) ?? parseUrl(trimmed) ?? parseList(trimmed) ?? parseName(trimmed);
  if (address === undefined)
    throw new BadSetting(`${where} is "${text}": give host:port, such as ${EXAMPLES}`);
  return address;
}

/** `unix:PATH` or `unix:///PATH`. */
function parseUnix(text: string): ReceiverAddress | undefined {
  const path = /^unix:(?:\/\/(?=\/))?([^\s].*)$/i.exec(text)?.[1];
  if (path === undefined) return undefined;
  return {
    target: `unix:${path}`,
    scheme: undefined,
    authority: 'localhost',
    path: undefined,
    socketPath: path,
  };
}

function parseUrl(text: string): ReceiverAddress | undefined {
  const match = /^(https?):\/\/(\[[^\]]+\]|[^:/?#@\s[\]]+)(?::(\d{1,5}))?(\/[^\s?#]*)?$/i.exec(text);
  if (match === null) return undefined;
  const scheme = match[1]!.toLowerCase() as 'http' | 'https';
  const authority = `${match[2]}:${match[3] ?? PORTS[scheme]}`;
  if (!isHostAndPort(authority)) return undefined;
  return { target: authority, scheme, authority, path: match[4], socketPath: undefined };
}

/** `ipv4:1.2.3.4:4317,5.6.7.8:4317`, `ipv6:[::1]:4317`. */
function parseList(text: string): ReceiverAddress | undefined {
  const list = /^ipv[46]:(.+)$/.exec(text)?.[1];
  if (list === undefined || !list.split(',').every(isHostAndPort)) return undefined;
  return { target: text, scheme: undefined, authority: undefined, path: undefined, socketPath: undefined };
}

/** `host:port`, with or without `dns:` or `dns:///` before it; grpc-js does not ask a server that is named there. */
function parseName(text: string): ReceiverAddress | undefined {
  const [, prefix = '', authority = ''] = /^(dns:(?:\/\/\/)?)?([^/]+)$/i.exec(text) ?? [];
  if (!isHostAndPort(authority)) return undefined;
  return { target: prefix + authority, scheme: undefined, authority, path: undefined, socketPath: undefined };
}

function isHostAndPort(text: string): boolean {
  const [, host = '', port] = /^(\[[^\]]+\]|[^:[\]]+):(\d{1,5})$/.exec(text) ?? [];
  const isHost = host.startsWith('[') ? isIPv6(host.slice(1, -1)) : HOST.test(host);
  return isHost && Number(port) >= 1 && Number(port) <= 65_535;
}
