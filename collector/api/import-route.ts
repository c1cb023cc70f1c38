/** `POST /api/v1/import?name=FILE[&at=now|TIME]` with a file's bytes as the body: see docs/api.md. */

import type { IncomingMessage } from 'node:http';
import type { ImportResult } from '../import/import-result.ts';
import { ImportBusyError, ImportError, type Importer, ImportUnwrittenError } from '../import/importer.ts';
import { MAX_IMPORT_BYTES } from '../import/limits.ts';
import type { ByteBudget } from '../net/byte-budget.ts';
import { HttpError, readBody } from '../net/read-body.ts';
import { RequestError, readTime } from './parameters.ts';
import { checkOrigin, readFileName } from './uploads.ts';

export const IMPORT_PATH = '/api/v1/import';

/** Limit for bodies at a time: they wait in memory. */
const MAX_UPLOADS = 4;
/** A person's line may be slow; one that stalls is cut sooner. */
const MAX_UPLOAD_MS = 240_000;

export class ImportRoute {
  readonly #importer: Importer;
  readonly #budget: ByteBudget;
  readonly #now: () => number;
  #uploads = 0;

  constructor(importer: Importer, budget: ByteBudget, now: () => number) {
    this.#importer = importer;
    this.#budget = budget;
    this.#now = now;
  }

  /** @throws HttpError */
  async answer(request: IncomingMessage, parameters: URLSearchParams): Promise<ImportResult> {
    checkOrigin(request);
    if (this.#uploads >= MAX_UPLOADS) throw new HttpError(503, 'other files are being sent: try again later');
    this.#uploads++;
    const lease = this.#budget.lease();
    try {
      const options = this.#readOptions(parameters);
      const body = await readBody(request, {
        maxBytes: MAX_IMPORT_BYTES,
        lease,
        maxArrivalMs: MAX_UPLOAD_MS,
      });
      return await this.#importer.import(body, options);
    } catch (error) {
      if (error instanceof RequestError) throw new HttpError(400, error.message);
      if (error instanceof ImportError) throw new HttpError(422, error.message);
      if (error instanceof ImportUnwrittenError) throw new HttpError(507, error.message);
      if (error instanceof ImportBusyError) throw new HttpError(503, error.message);
      throw error;
    } finally {
      this.#uploads--;
      lease.end();
    }
  }

  #readOptions(parameters: URLSearchParams) {
    const fileName = readFileName(parameters);
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
