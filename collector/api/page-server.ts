import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { Turns } from '../../common/base/turns.ts';
import { FilterError } from '../../common/profile/filters/filter.ts';
import { Importer } from '../import/importer.ts';
import { type Access, OPEN_ACCESS, TOKEN_NEEDED } from '../net/access.ts';
import { ByteBudget } from '../net/byte-budget.ts';
import { isOfAnotherSite, isTrustedHost } from '../net/host-check.ts';
import { type ListenAddress, listenOn, stopListening } from '../net/listen.ts';
import type { PageFile } from '../net/page-files.ts';
import { errorText, HttpError } from '../net/read-body.ts';
import { QueryEnded, QueryLives } from '../query/query-life.ts';
import { withWallTime } from '../query/wall-store.ts';
import { COLLECTOR_DEFAULTS } from '../settings/options.ts';
import { SourceFiles } from '../source/source-files.ts';
import { PartDropped, StoreUnavailable, TooMuchToRead } from '../store/store.ts';
import { withLateNames } from '../symbols/named-store.ts';
import type { SymbolSources } from '../symbols/symbol-sources.ts';
import { IMPORT_PATH, ImportRoute } from './import-route.ts';
import { describeRoutes } from './openapi.ts';
import { RequestError } from './parameters.ts';
import type { StatusSources } from './responses.ts';
import { SYMBOLS_PATH, SymbolRoute } from './symbol-route.ts';
import type { ErrorResponse } from './types.ts';
import { type ApiContext, type FileAnswer, ROUTES, type Route } from './v1.ts';
import { warmUp } from './warm-up.ts';

const compress = promisify(gzip);

/** Less than the page's interval: several open pages cost as much as one. */
const ANSWER_LIFE_MS = 900;
/** What lru-cache takes for no limit. */
const UNTIL_MADE = 0;
const MIN_COMPRESSED_BYTES = 2048;
/** Delay of the warm-up: what starts the collector has to come first. */
const WARM_UP_AFTER_MS = 2000;
/** Each time at least one part of an hour was dropped meanwhile, or found damaged. */
const MAX_TRIES = 20;

const PLAIN_TEXT = { type: 'text/plain; charset=utf-8' };

/** The page asks its own server and nothing else, and nobody may frame it. */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

export interface PageServerOptions {
  /** By default anyone may ask. */
  access?: Access;
  listen: ListenAddress;
  /** By URL path: see readPageFiles. */
  files: ReadonlyMap<string, PageFile>;
  status: StatusSources;
  /** Names frames that arrived without a name. */
  symbols: SymbolSources;
  /** Source files that it may show; none by default. */
  sources?: SourceFiles;
  now: () => number;
  logger: Pick<Logger, 'error'>;
}

/** Serves the page and the query API. */
export async function startPageServer(
  options: PageServerOptions,
): Promise<{ port: number; stop(): Promise<void> }> {
  const handler = new PageHandler(options);
  const { access = OPEN_ACCESS } = options;
  const server = access.createServer({}, (request, response) => void handler.handle(request, response));
  options.status.gate?.guard(server);
  access.noteBadHandshakes(server, 'the page', (reason) =>
    options.status.stats.refuse(reason, options.now()),
  );
  const port = await listenOn(server, options.listen);
  const timer = setTimeout(() => void handler.warmUp(), WARM_UP_AFTER_MS).unref();
  const stop = (): Promise<void> => {
    clearTimeout(timer);
    handler.endWarmUp();
    return stopListening(server);
  };
  return { port, stop };
}

/** Files are made on this thread, and each holds a whole profile while it is. */
const MAX_FILES_AT_A_TIME = 2;
const MAX_WAITING_FILES = 16;
const RETRY_AFTER_S = 10;

class PageHandler {
  readonly #options: PageServerOptions;
  /** Answers under way or just given, by URL. */
  readonly #answers = new LRUCache<string, Answer>({ max: 64, ttl: ANSWER_LIFE_MS });
  readonly #lives = new QueryLives();
  readonly #files = new Turns(MAX_FILES_AT_A_TIME);

  /** Until somebody asks. */
  #isCold = true;

  readonly #uploads: Readonly<Record<string, ImportRoute | SymbolRoute>>;
  readonly #store: ReturnType<typeof withLateNames>;

  constructor(options: PageServerOptions) {
    this.#options = options;
    const { status, symbols, now } = options;
    this.#store = withWallTime(withLateNames(status.store, symbols.names));
    this.#uploads = {
      [IMPORT_PATH]: new ImportRoute(
        new Importer(status.store, now),
        status.budget ?? new ByteBudget(COLLECTOR_DEFAULTS.maxBytesInFlight),
        now,
      ),
      [SYMBOLS_PATH]: new SymbolRoute(symbols, status.store, now),
    };
  }

  /** Before the first question, if there is time; see warm-up.ts. */
  async warmUp(): Promise<void> {
    try {
      await warmUp(this.#context(), () => this.#isCold);
    } catch (error) {
      // What is wrong will be in the answer to whoever asks.
      if (this.#isCold) this.#options.logger.error({ err: error }, 'a first query failed');
    }
  }

  endWarmUp(): void {
    this.#isCold = false;
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
      await this.#send(request, response, known ? error.httpStatus : 500, JSON.stringify(body));
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const problem = this.#health(request.url);
    if (problem !== undefined) {
      await this.#send(request, response, problem === '' ? 200 : 503, `${problem || 'ok'}\n`, PLAIN_TEXT);
      return;
    }
    const { access = OPEN_ACCESS, listen } = this.#options;
    const { host } = request.headers;
    // with a token any name will do: a browser sends it to no other one than it was typed for
    if (!access.needsToken && !isTrustedHost(host, listen.host)) {
      const url = `${access.scheme}://localhost:${listen.port}`;
      throw new HttpError(
        421,
        `"${host}" is not a name of this server: open it as ${url}, or start it with --token-file, which allows any name`,
      );
    }
    if (!access.allowsRequest(request)) {
      response.setHeader(
        'www-authenticate',
        'Basic realm="everyframe: the token is the password", charset="UTF-8"',
      );
      throw new HttpError(401, TOKEN_NEEDED);
    }
    this.#options.status.gate?.prove(request.socket);
    const url = readUrl(request);
    const upload = Object.hasOwn(this.#uploads, url.pathname) ? this.#uploads[url.pathname] : undefined;
    if (upload !== undefined && request.method === 'POST') {
      const result = await upload.answer(request, url.searchParams);
      // whoever gave it sees it with the next answer
      this.#answers.clear();
      await this.#send(request, response, 200, JSON.stringify(result));
      return;
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new HttpError(
        405,
        `${request.method} is not served here: only GET is, and POST ${IMPORT_PATH} and ${SYMBOLS_PATH}`,
      );
    }
    if (url.pathname.startsWith('/api/v1/')) {
      if (isOfAnotherSite(request.headers))
        throw new HttpError(403, 'a page of another site asks: only pages of this server may');
      await this.#answerV1(url, request, response);
      return;
    }
    const file = this.#options.files.get(url.pathname);
    if (file === undefined) throw new HttpError(404, `nothing at ${url.pathname}`);
    await this.#send(request, response, 200, file.body, file);
  }

  /** Whoever watches services has no token, and asks by address; '' where all is well, undefined for other paths. */
  #health(url: string | undefined): string | undefined {
    if (url === '/healthz') return '';
    return url === '/readyz' ? (this.#options.status.store.problem ?? '') : undefined;
  }

  async #answerV1(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.endWarmUp();
    const { pathname, searchParams } = url;
    const route = Object.hasOwn(ROUTES, pathname) ? ROUTES[pathname] : undefined;
    if (route?.response === undefined && route !== undefined) {
      const file = await this.#makeFile(route, searchParams, response);
      response.setHeader('content-disposition', `attachment; filename="${file.fileName}"`);
      await this.#send(request, response, 200, Buffer.from(file.bytes), { type: file.type });
      return;
    }
    if (route === undefined) {
      if (pathname !== '/api/v1/openapi.json') {
        throw new HttpError(404, `nothing at ${pathname}: /api/v1/openapi.json lists what there is`);
      }
      await this.#send(request, response, 200, JSON.stringify(describeRoutes(ROUTES)));
      return;
    }
    const run = (isWanted: () => boolean): Promise<unknown> => this.#runV1(route, searchParams, isWanted);
    const body = route.isCurrent
      ? JSON.stringify(await run(() => !response.destroyed))
      : await this.#cached(`${pathname}?${searchParams}`, response, run);
    await this.#send(request, response, 200, body);
  }

  async #makeFile(route: Route, parameters: URLSearchParams, response: ServerResponse): Promise<FileAnswer> {
    if (this.#files.waiting >= MAX_WAITING_FILES) {
      response.setHeader('retry-after', RETRY_AFTER_S);
      throw new HttpError(503, `${MAX_WAITING_FILES} exports wait for their turn: ask again later`);
    }
    const isWanted = (): boolean => !response.destroyed;
    return await this.#files.run(async () => {
      if (!isWanted()) throw new QueryEnded('nobody waits for the answer any more');
      return (await this.#runV1(route, parameters, isWanted)) as FileAnswer;
    });
  }

  async #runV1(route: Route, parameters: URLSearchParams, isWanted: () => boolean): Promise<unknown> {
    try {
      return await this.#lives.run(this.#store, isWanted, (store) =>
        untilWhole(() => route.run(parameters, { ...this.#context(), store })),
      );
    } catch (error) {
      if (!(error instanceof RequestError || error instanceof FilterError)) throw error;
      throw new HttpError(400, error.message);
    }
  }

  #context(): ApiContext {
    const { status, now, sources = SourceFiles.NONE } = this.#options;
    return { store: this.#store, status, sources, now };
  }

  /** For all that ask the same; it ends when the last of them is gone. */
  async #cached(
    key: string,
    response: ServerResponse,
    make: (isWanted: () => boolean) => Promise<unknown>,
  ): Promise<string> {
    let answer = this.#answers.get(key);
    if (answer === undefined) {
      const made: Answer = { body: Promise.resolve(''), waiting: 1 };
      made.body = make(() => made.waiting > 0).then((value) => JSON.stringify(value));
      this.#answers.set(key, made, { ttl: UNTIL_MADE });
      const isKept = (): boolean => this.#answers.get(key) === made;
      made.body.then(
        () => isKept() && this.#answers.set(key, made),
        () => isKept() && this.#answers.delete(key),
      );
      answer = made;
    } else answer.waiting++;
    const shared = answer;
    response.once('close', () => shared.waiting--);
    return await shared.body;
  }

  async #send(
    request: IncomingMessage,
    response: ServerResponse,
    httpStatus: number,
    body: string | Buffer,
    file?: Pick<PageFile, 'type'> & Partial<PageFile>,
  ): Promise<void> {
    let bytes = typeof body === 'string' ? Buffer.from(body) : body;
    response.setHeader('vary', 'accept-encoding');
    const accepted = String(request.headers['accept-encoding'] ?? '');
    if (bytes.length >= MIN_COMPRESSED_BYTES && /\bgzip\b/.test(accepted)) {
      bytes = await compress(bytes, { level: 1 });
      response.setHeader('content-encoding', 'gzip');
    }
    response.writeHead(httpStatus, {
      ...SECURITY_HEADERS,
      'content-type': file?.type ?? 'application/json; charset=utf-8',
      'content-length': bytes.length,
      'cache-control':
        file?.body === undefined ? 'no-store' : file.immutable ? 'max-age=31536000, immutable' : 'no-cache',
    });
    response.end(request.method === 'HEAD' ? undefined : bytes);
  }
}

/** 503 for what is not a failure of the query: waiting mends it, or asking for less. */
function asHttpError(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return new HttpError(503, `${error.message}: try again later`);
  const isEnded = error instanceof QueryEnded || error instanceof TooMuchToRead;
  return isEnded ? new HttpError(503, error.message) : error;
}

/** An answer under way or just given, and how many wait for it. */
interface Answer {
  body: Promise<string>;
  waiting: number;
}

/** Retention may drop samples under a query: it is answered without them, not with a half of them. */
async function untilWhole<T>(run: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof PartDropped) || tries === MAX_TRIES) throw error;
    }
  }
}

/** @throws HttpError */
function readUrl({ url = '/' }: IncomingMessage): URL {
  if (!URL.canParse(url, 'http://localhost')) throw new HttpError(400, `"${url}" is not an address`);
  return new URL(url, 'http://localhost');
}
