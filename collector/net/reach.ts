/** Who can reach the collector: where it listens, and whether that is allowed. */
import { BadSetting } from '../../common/base/bad-setting.ts';
import type { Access } from './access.ts';
import { formatAddress, isLoopback, type ListenAddress, parseListenAddress } from './listen.ts';
import type { ServerName } from './listen-error.ts';

type Addresses = Record<ServerName, ListenAddress>;

interface Listening {
  grpcListen: string;
  httpListen: string;
  pageListen: string;
}

/** @throws BadSetting that names the flag */
export function readAddresses({ grpcListen, httpListen, pageListen }: Listening): Addresses {
  const read = (name: ServerName, text: string): ListenAddress => {
    try {
      return parseListenAddress(text);
    } catch (error) {
      throw new BadSetting(`--${name}-listen: ${(error as Error).message}`);
    }
  };
  return { grpc: read('grpc', grpcListen), http: read('http', httpListen), page: read('page', pageListen) };
}

/**
 * Who reaches the collector sees what runs on the machines that send to it.
 *
 * @returns what to warn of
 * @throws BadSetting where anyone could, and that is not allowed
 */
export function checkBeyondLoopback(
  listen: Addresses,
  access: Access,
  { allowAnyone = false }: { allowAnyone?: boolean | undefined },
): string[] {
  const warnings: string[] = [];
  for (const name of ['grpc', 'http', 'page'] as const) {
    if (isLoopback(listen[name].host)) continue;
    const where = `--${name}-listen ${formatAddress(listen[name])} is beyond this machine`;
    const danger = name === 'page' ? 'sees what runs here' : 'can send profiles';
    if (!access.needsToken && !allowAnyone) {
      throw new BadSetting(
        `${where}, and whoever reaches it ${danger}: give --token-file (and --tls-cert, --tls-key), or --allow-anyone`,
      );
    }
    if (!access.needsToken) warnings.push(`${where}: whoever reaches it ${danger} (--allow-anyone)`);
    else if (access.tls === undefined)
      warnings.push(`${where}: without --tls-cert and --tls-key the token can be read on the way`);
  }
  return warnings;
}
