/** `POST /api/v1/symbols?name=FILE` with an ELF file as the body: see docs/api.md. */
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { HttpError } from '../net/read-body.ts';
import type { Store } from '../store/store.ts';
import { MAX_SYMBOL_FILE_BYTES } from '../symbols/symbol-files.ts';
import { ELF_MAGIC, SymbolFileError, SymbolIntake } from '../symbols/symbol-intake.ts';
import type { SymbolSources } from '../symbols/symbol-sources.ts';
import type { SymbolsResult } from './types.ts';
import { checkOrigin, readFileName } from './uploads.ts';

export const SYMBOLS_PATH = '/api/v1/symbols';

const MAX_UPLOADS = 2;

export class SymbolRoute {
  readonly #sources: SymbolSources;
  readonly #intake: SymbolIntake;
  #uploads = 0;

  constructor(sources: SymbolSources, store: Pick<Store, 'parts' | 'types'>, now: () => number) {
    this.#sources = sources;
    this.#intake = new SymbolIntake(sources, store, now);
  }

  /** @throws HttpError */
  async answer(request: IncomingMessage, parameters: URLSearchParams): Promise<SymbolsResult> {
    checkOrigin(request);
    const fileName = readFileName(parameters);
    if (this.#uploads >= MAX_UPLOADS) throw new HttpError(503, 'other files are being sent: try again later');
    this.#uploads++;
    let path: string | undefined;
    try {
      path = this.#sources.files.incomingPath();
      await receive(request, path);
      return { fileName, ...(await this.#intake.take(fileName, path)) };
    } catch (error) {
      throw error instanceof SymbolFileError
        ? new HttpError(422, error.message)
        : explainDisk(error as Error);
    } finally {
      this.#uploads--;
      if (path !== undefined) await rm(path, { force: true });
    }
  }
}

/** @throws HttpError when it is too large, is not an ELF file, or ends early */
async function receive(request: IncomingMessage, path: string): Promise<void> {
  let bytes = 0;
  let problem: HttpError | undefined;
  const check = new Transform({
    transform(chunk: Buffer, _, done) {
      if (problem === undefined && bytes === 0 && chunk.length >= 4 && chunk.readUInt32BE(0) !== ELF_MAGIC)
        problem = new HttpError(422, 'this is not an ELF file: give a program, a library or a debug file');
      bytes += chunk.length;
      if (bytes > MAX_SYMBOL_FILE_BYTES)
        problem ??= new HttpError(
          413,
          `the file is larger than ${MAX_SYMBOL_FILE_BYTES} bytes: strip its data`,
        );
      // The rest is read and dropped, so that the sender gets the answer.
      done(null, problem === undefined ? chunk : undefined);
    },
  });
  await pipeline(request, check, createWriteStream(path, { mode: 0o600, flags: 'wx' }));
  if (problem !== undefined) throw problem;
}

/** Explains an error of the directory of symbol files, as opposed to the file. */
function explainDisk(error: NodeJS.ErrnoException): Error {
  const { code = '', message } = error;
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new HttpError(507, `there is no room for the file: ${message}`);
  if (['EIO', 'EROFS', 'EACCES', 'EMFILE', 'ENFILE', 'ENOENT'].includes(code))
    return new HttpError(503, `the file can't be kept: ${message}`);
  if (code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE')
    return new HttpError(400, 'the connection ended before the file did');
  return error;
}
