/** ClickHouse's HTTP protocol over chdb, the engine as a library: what @clickhouse/client asks of a server. */
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

interface Session {
  query(sql: string, format?: string): string;
  cleanup(): void;
}

/** Parameters of a request that are no settings of the engine. */
const OWN = new Set(['query', 'query_id', 'database', 'default_format', 'session_id', 'role']);

export interface ChdbServer {
  url: string;
  server: Server;
  run(sql: string): string;
  stop(): void;
}

/** @param folder where `npm install chdb` was run */
export async function startChdbServer(folder: string, data: string): Promise<ChdbServer> {
  const require = createRequire(join(folder, 'package.json'));
  const { Session } = require('chdb') as { Session: new (path: string) => Session };
  const session = new Session(data);
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { searchParams } = new URL(request.url ?? '/', 'http://localhost');
      try {
        for (const [name, value] of settingsOf(searchParams)) session.query(`SET ${name} = '${value}'`);
        const database = searchParams.get('database') ?? 'default';
        session.query(`USE \`${database}\``);
        const parts = [searchParams.get('query') ?? '', Buffer.concat(chunks).toString('utf8')];
        const answer = session.query(parts.filter((part) => part !== '').join('\n'), 'TabSeparated');
        response.end(answer);
      } catch (error) {
        response.statusCode = 500;
        response.end(String((error as Error).message));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    run: (sql) => session.query(sql, 'TabSeparated'),
    stop: () => {
      server.closeAllConnections();
      server.close();
      session.cleanup();
    },
  };
}

/** A token of an earlier request must not last: this is one session for all of them. */
function settingsOf(parameters: URLSearchParams): Map<string, string> {
  const settings = new Map([['insert_deduplication_token', '']]);
  for (const [name, value] of parameters)
    if (!OWN.has(name) && /^\w+$/.test(name) && /^[\w.-]*$/.test(value)) settings.set(name, value);
  return settings;
}
