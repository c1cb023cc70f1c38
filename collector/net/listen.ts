import type { Server as HttpServer } from 'node:http';
import { type AddressInfo, isIP, type Server } from 'node:net';

export interface ListenAddress {
  /** Name or IP address, without brackets. */
  host: string;
  port: number;
}

/**
 * Reads `host:port`, `[v6]:port` or `:port` (every address of this machine).
 *
 * @throws Error whose message names the text and what is expected
 */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text.trim());
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new Error(`"${text}" is not an address to listen on: write host:port, such as 127.0.0.1:11080`);
  }
  return { host: (match[1] ?? match[2]) || '0.0.0.0', port };
}

export function formatAddress({ host, port }: ListenAddress): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/** True where only programs on this machine can connect. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

/** Starts listening; resolves with the bound port. */
export function listenOn(server: Server, { host, port }: ListenAddress): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Stops accepting; connections that stay open are cut after a second. */
export function stopListening(server: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), 1000);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
    server.closeIdleConnections();
  });
}
