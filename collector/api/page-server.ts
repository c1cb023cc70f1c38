/** The page and the query API: who may ask, and whose page that is. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Turns } from '../../common/base/turns.ts';
import { type Access, OPEN_ACCESS, TOKEN_NEEDED } from '../net/access.ts';
import type { ConnectionGate } from '../net/connection-gate.ts';
import { isTrustedHost } from '../net/host-check.ts';
import { type ListenAddress, listenOn, stopListening } from '../net/listen.ts';
import { errorText, HttpError } from '../net/read-body.ts';
import { QueryEnded } from '../query/query-life.ts';
import { StoreUnavailable, TooMuchToRead } from '../store/store.ts';
import { sendAnswer } from './send-answer.ts';
import { type ShownTenant, TenantPage, type TenantPageOptions } from './tenant-page.ts';
import type { ErrorResponse } from './types.ts';

/** Delay of the warm-up: what starts the collector has to come first. */
const WARM_UP_AFTER_MS = 2000;

/** Files are made on this thread, and each holds a whole profile while it is. */
const MAX_FILES_AT_A_TIME = 2;

const PLAIN_TEXT = { type: 'text/plain; charset=utf-8' };

export interface PageServerOptions extends TenantPageOptions {
  /** By default anyone may ask. */
  access?: Access;
  listen: ListenAddress;
  /** By name: what whoever comes with its token is shown. */
  tenants: ReadonlyMap<string, ShownTenant>;
  gate?: ConnectionGate;
  /** Counts a connection that failed before anybody knew whose it is. */
  refuse?: (reason: string) => void;
}

/** Serves the page and the query API. */
export async function startPageServer(
  options: PageServerOptions,
): Promise<{ port: number; stop(): Promise<void> }> {
  const pages = new PageServer(options);
  const { access = OPEN_ACCESS, gate, refuse = () => {} } = options;
  const server = access.createServer({}, (request, response) => void pages.handle(request, response));
  gate?.guard(server);
  access.noteBadHandshakes(server, 'the page', refuse);
  const port = await listenOn(server, options.listen);
  const timer = setTimeout(() => void pages.warmUp(), WARM_UP_AFTER_MS).unref();
  const stop = (): Promise<void> => {
    clearTimeout(timer);
    pages.endWarmUp();
    return stopListening(server);
  };
  return { port, stop };
}

/** Who may come in, and to whose pages. */
class PageServer {
  readonly #options: PageServerOptions;
  readonly #pages: ReadonlyMap<string, TenantPage>;

  constructor(options: PageServerOptions) {
    this.#options = options;
    const files = new Turns(MAX_FILES_AT_A_TIME);
    const pages = [...options.tenants].map(
      ([name, tenant]) => [name, new TenantPage(tenant, options, files)] as const,
    );
    this.#pages = new Map(pages);
  }

  async warmUp(): Promise<void> {
    for (const page of this.#pages.values()) await page.warmUp();
  }

  endWarmUp(): void {
    for (const page of this.#pages.values()) page.endWarmUp();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (caught) {
      const error = asHttpError(caught);
      const known = error instanceof HttpError;
      if (!known) this.#options.logger.error({ err: error, url: request.url }, 'a query failed');
      const message = known
        ? error.message
        : `the query failed: ${error instanceof Error ? error.message : error}`;
      const body: ErrorResponse = { error: errorText(message) };
      if (!request.complete) response.setHeader('connection', 'close');
      await sendAnswer(request, response, known ? error.httpStatus : 500, JSON.stringify(body));
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const problem = this.#health(request.url);
    if (problem !== undefined) {
      await sendAnswer(request, response, problem === '' ? 200 : 503, `${problem || 'ok'}\n`, PLAIN_TEXT);
      return;
    }
    const { access = OPEN_ACCESS, listen, gate } = this.#options;
    const { host, authorization } = request.headers;
    // with a token any name will do: a browser sends it to no other one than it was typed for
    if (!access.needsToken && !isTrustedHost(host, listen.host)) {
      const url = `${access.scheme}://localhost:${listen.port}`;
      throw new HttpError(
        421,
        `"${host}" is not a name of this server: open it as ${url}, or start it with --token-file, which allows any name`,
      );
    }
    const tenant = access.tenantOf(authorization);
    const page = tenant === undefined ? undefined : this.#pages.get(tenant);
    if (page === undefined) {
      response.setHeader(
        'www-authenticate',
        'Basic realm="everyframe: the token is the password", charset="UTF-8"',
      );
      throw new HttpError(401, TOKEN_NEEDED);
    }
    gate?.prove(request.socket);
    await page.answer(request, response);
  }

  /** Whoever watches services has no token, and asks by address; '' where all is well, undefined for other paths. */
  #health(url: string | undefined): string | undefined {
    if (url === '/healthz') return '';
    if (url !== '/readyz') return undefined;
    const problems = [...this.#options.tenants.values()].map(({ status }) => status.store.problem);
    return problems.find((problem) => problem !== undefined) ?? '';
  }
}

/** 503 for what is not a failure of the query: waiting mends it, or asking for less. */
function asHttpError(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return new HttpError(503, `${error.message}: try again later`);
  const isEnded = error instanceof QueryEnded || error instanceof TooMuchToRead;
  return isEnded ? new HttpError(503, error.message) : error;
}
