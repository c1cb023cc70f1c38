import { formatAddress, type ListenAddress } from './listen.ts';

export type ServerName = 'grpc' | 'http' | 'page';

const PURPOSE: Record<ServerName, string> = {
  grpc: 'OTLP over gRPC',
  http: 'OTLP over HTTP',
  page: 'the page',
};

/** What a person can do about an address that can't be listened on: a sentence that names the flag. */
export function describeListenError(error: unknown, name: ServerName, address: ListenAddress): string {
  const message = error instanceof Error ? error.message : String(error);
  const where = formatAddress(address);
  const flag = `--${name}-listen`;
  const other = `${address.host}:${address.port + 1}`;
  if (message.includes('EADDRINUSE')) {
    return (
      `port ${address.port} for ${PURPOSE[name]} is taken by another program: ` +
      `stop that one, or choose another port, such as ${flag} ${other}`
    );
  }
  if (message.includes('EACCES')) {
    return `no permission to listen on ${where} for ${PURPOSE[name]}: choose a port above 1023 with ${flag}`;
  }
  if (message.includes('EADDRNOTAVAIL') || message.includes('ENOTFOUND')) {
    return `${where} is not an address of this machine: correct ${flag}`;
  }
  return `cannot listen on ${where} for ${PURPOSE[name]} (${flag}): ${message}`;
}
