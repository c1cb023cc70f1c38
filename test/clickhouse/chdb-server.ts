/** ClickHouse's HTTP protocol over chdb, the engine as a library: what @clickhouse/client asks of a server. */
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

/** A connection with settings of its own: one query at a time. */
interface Session {
  query(sql: string, format?: string): string;
  queryAsync(sql: string, options: { format: string }): Promise<{ bytes(): Uint8Array }>;
  cleanup(): void;
}

/** Parameters of a request that are not settings of the engine. */
const OWN = new Set(['query', 'query_id', 'database', 'default_format', 'session_id', 'role']);
/** As many as Node has threads for. */
const SESSIONS = 4;

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
  const sessions = Array.from({ length: SESSIONS }, () => new Session(data));
  const own = new Session(data);
  const pool = new Pool(sessions);
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { searchParams } = new URL(request.url ?? '/', 'http://localhost');
      const body = Buffer.concat(chunks).toString('utf8');
      void pool
        .use((session) => answer(session, searchParams, body))
        .then(
          (bytes) => response.end(bytes),
          (error: Error) => response.writeHead(500).end(error.message),
        );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    run: (sql) => own.query(sql, 'TabSeparated'),
    stop: () => {
      server.closeAllConnections();
      server.close();
      for (const session of [own, ...sessions]) session.cleanup();
    },
  };
}

async function answer(session: Session, parameters: URLSearchParams, body: string): Promise<Uint8Array> {
  for (const [name, value] of settingsOf(parameters)) session.query(`SET ${name} = '${value}'`);
  session.query(`USE \`${parameters.get('database') ?? 'default'}\``);
  const parts = [parameters.get('query') ?? '', body];
  const sql = parts.filter((part) => part !== '').join('\n');
  return (await session.queryAsync(sql, { format: 'TabSeparated' })).bytes();
}

/** A token of an earlier request must not last: sessions are used again. */
function settingsOf(parameters: URLSearchParams): Map<string, string> {
  const settings = new Map([['insert_deduplication_token', '']]);
  for (const [name, value] of parameters)
    if (!OWN.has(name) && /^\w+$/.test(name) && /^[\w.-]*$/.test(value)) settings.set(name, value);
  return settings;
}

/** Who finds no session that is free waits for one. */
class Pool {
  readonly #free: Session[];
  readonly #waiting: ((session: Session) => void)[] = [];

  constructor(sessions: readonly Session[]) {
    this.#free = [...sessions];
  }

  async use<T>(run: (session: Session) => Promise<T>): Promise<T> {
    const session =
      this.#free.pop() ?? (await new Promise<Session>((resolve) => this.#waiting.push(resolve)));
    try {
      return await run(session);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(session);
      else next(session);
    }
  }
}
