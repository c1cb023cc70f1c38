import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';

/**
 * True if a request's Host header names this server in a way that a foreign web page can't bring about. With
 * DNS rebinding, a page at attacker.example has that name point to 127.0.0.1 and so reads what only this
 * machine should; its requests still carry the name. Addresses can't be rebound.
 */
export function isTrustedHost(header: string | undefined, boundHost: string): boolean {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::\d{1,5})?$/.exec(header ?? '');
  if (match === null) return false;
  const name = (match[1] ?? match[2]!).toLowerCase();
  if (isIP(name) !== 0) return true;
  return name === 'localhost' || name === boundHost.toLowerCase() || name === hostname().toLowerCase();
}

/**
 * True if a browser says that a page of another site has it ask, as for an image: the answer is kept from that page,
 * but making it may take seconds. A link that a person follows is no such request. See w3c.github.io/webappsec-fetch-metadata.
 */
export function isOfAnotherSite(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  return (
    site !== undefined &&
    site !== 'same-origin' &&
    site !== 'none' &&
    headers['sec-fetch-dest'] !== 'document'
  );
}
