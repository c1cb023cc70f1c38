/** What one tenant is shown: answers to questions about its samples, and the page's files. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Turns } from '../../common/base/turns.ts';
import { FilterError } from '../../common/profile/filters/filter.ts';
import { Importer } from '../import/importer.ts';
import { ByteBudget } from '../net/byte-budget.ts';
import { isOfAnotherSite } from '../net/host-check.ts';
import type { PageFile } from '../net/page-files.ts';
import { HttpError } from '../net/read-body.ts';
import { QueryEnded, QueryLives } from '../query/query-life.ts';
import { withWallTime } from '../query/wall-store.ts';
import { COLLECTOR_DEFAULTS } from '../settings/options.ts';
import { SourceFiles } from '../source/source-files.ts';
import { PartDropped } from '../store/store.ts';
import { withLateNames } from '../symbols/named-store.ts';
import type { SymbolSources } from '../symbols/symbol-sources.ts';
import { IMPORT_PATH, ImportRoute } from './import-route.ts';
import { describeRoutes } from './openapi.ts';
import { RequestError } from './parameters.ts';
import type { StatusSources } from './responses.ts';
import { sendAnswer } from './send-answer.ts';
import { SYMBOLS_PATH, SymbolRoute } from './symbol-route.ts';
import { type ApiContext, type FileAnswer, ROUTES, type Route } from './v1.ts';
import { warmUp } from './warm-up.ts';

/** Less than the page's interval: several open pages cost as much as one. */
const ANSWER_LIFE_MS = 900;
/** What lru-cache takes for no limit. */
const UNTIL_MADE = 0;
/** Each time at least one part of an hour was dropped meanwhile, or found damaged. */
const MAX_TRIES = 20;

export interface ShownTenant {
  status: StatusSources;
  /** Names frames that arrived without a name. */
  symbols: SymbolSources;
}

export interface TenantPageOptions {
  /** By URL path: see readPageFiles. */
  files: ReadonlyMap<string, PageFile>;
  /** Source files that it may show; none by default. */
  sources?: SourceFiles;
  /** Of what is sent to it. */
  budget?: ByteBudget;
  now: () => number;
  logger: Pick<Logger, 'error'>;
}

const MAX_WAITING_FILES = 16;
const RETRY_AFTER_S = 10;

export class TenantPage {
  readonly #options: TenantPageOptions;
  readonly #status: StatusSources;
  /** Answers under way or just given, by URL. */
  readonly #answers = new LRUCache<string, Answer>({ max: 64, ttl: ANSWER_LIFE_MS });
  readonly #lives = new QueryLives();
  /** Of all tenants. */
  readonly #files: Turns;

  /** Until somebody asks. */
  #isCold = true;

  readonly #uploads: Readonly<Record<string, ImportRoute | SymbolRoute>>;
  readonly #store: ReturnType<typeof withLateNames>;

  constructor(tenant: ShownTenant, options: TenantPageOptions, files: Turns) {
    this.#files = files;
    this.#options = options;
    this.#status = tenant.status;
    const { symbols, status } = tenant;
    const { now, budget = new ByteBudget(COLLECTOR_DEFAULTS.maxBytesInFlight) } = options;
    this.#store = withWallTime(withLateNames(status.store, symbols.names));
    this.#uploads = {
      [IMPORT_PATH]: new ImportRoute(new Importer(status.store, now), budget, now),
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

  /** @throws HttpError */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = readUrl(request);
    const upload = Object.hasOwn(this.#uploads, url.pathname) ? this.#uploads[url.pathname] : undefined;
    if (upload !== undefined && request.method === 'POST') {
      const result = await upload.answer(request, url.searchParams);
      // whoever gave it sees it with the next answer
      this.#answers.clear();
      await sendAnswer(request, response, 200, JSON.stringify(result));
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
    await sendAnswer(request, response, 200, file.body, file);
  }

  async #answerV1(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.endWarmUp();
    const { pathname, searchParams } = url;
    const route = Object.hasOwn(ROUTES, pathname) ? ROUTES[pathname] : undefined;
    if (route?.response === undefined && route !== undefined) {
      const file = await this.#makeFile(route, searchParams, response);
      response.setHeader('content-disposition', `attachment; filename="${file.fileName}"`);
      await sendAnswer(request, response, 200, Buffer.from(file.bytes), { type: file.type });
      return;
    }
    if (route === undefined) {
      if (pathname !== '/api/v1/openapi.json') {
        throw new HttpError(404, `nothing at ${pathname}: /api/v1/openapi.json lists what there is`);
      }
      await sendAnswer(request, response, 200, JSON.stringify(describeRoutes(ROUTES)));
      return;
    }
    const run = (isWanted: () => boolean): Promise<unknown> => this.#runV1(route, searchParams, isWanted);
    const body = route.isCurrent
      ? JSON.stringify(await run(() => !response.destroyed))
      : await this.#cached(`${pathname}?${searchParams}`, response, run);
    await sendAnswer(request, response, 200, body);
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
    const { now, sources = SourceFiles.NONE } = this.#options;
    return { store: this.#store, status: this.#status, sources, now };
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
