/** `POST /api/v1/import?name=FILE[&at=now|TIME]` with a file's bytes as the body: see docs/api.md. */
import type { IncomingMessage } from 'node:http';
import {
  ImportBusyError,
  ImportError,
  type Importer,
  type ImportResult,
  MAX_IMPORT_BYTES,
} from '../import/importer.ts';
import { RequestError, readTime } from './parameters.ts';
import { HttpError, readBody } from './read-body.ts';

export const IMPORT_PATH = '/api/v1/import';

const MAX_NAME_LENGTH = 255;
/** Of all bodies at a time: they wait in memory. */
const MAX_UPLOADS = 4;

export class ImportRoute {
  readonly #importer: Importer;
  readonly #now: () => number;
  #uploads = 0;

  constructor(importer: Importer, now: () => number) {
    this.#importer = importer;
    this.#now = now;
  }

  /** @throws HttpError */
  async answer(request: IncomingMessage, parameters: URLSearchParams): Promise<ImportResult> {
    checkOrigin(request);
    if (this.#uploads >= MAX_UPLOADS) throw new HttpError(503, 'other files are being sent: try again later');
    this.#uploads++;
    try {
      const options = this.#readOptions(parameters);
      return await this.#importer.import(await readBody(request, MAX_IMPORT_BYTES), options);
    } catch (error) {
      if (error instanceof RequestError) throw new HttpError(400, error.message);
      if (error instanceof ImportError) throw new HttpError(422, error.message);
      if (error instanceof ImportBusyError) throw new HttpError(503, error.message);
      throw error;
    } finally {
      this.#uploads--;
    }
  }

  #readOptions(parameters: URLSearchParams) {
    const fileName = parameters.get('name') ?? '';
    if (fileName === '' || fileName.length > MAX_NAME_LENGTH)
      throw new HttpError(400, `name is "${fileName}": give the file's name, whose ending is its format`);
    const at = parameters.get('at');
    const modified = parameters.get('modified');
    const nowMs = this.#now();
    return {
      fileName,
      endMs: at === null ? undefined : readTime('at', at, nowMs),
      fallbackEndMs: modified === null ? nowMs : Math.min(readTime('modified', modified, nowMs), nowMs),
    };
  }
}

/**
 * A page of another origin can post here without asking only what a form can: not this content type. The browser
 * names the page's origin with every POST.
 */
function checkOrigin(request: IncomingMessage): void {
  const { origin, host } = request.headers;
  if (origin !== undefined && !/^https?:\/\//.test(origin)) throw foreign(origin);
  if (origin !== undefined && new URL(origin).host !== host) throw foreign(origin);
  const type = (request.headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  if (type !== 'application/octet-stream')
    throw new HttpError(415, `content-type is "${type}": send application/octet-stream`);
}

const foreign = (origin: string): HttpError =>
  new HttpError(403, `requests from another page (${origin}) are not accepted`);
