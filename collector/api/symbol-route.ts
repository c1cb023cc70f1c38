/** `POST /api/v1/symbols?name=FILE` with an ELF file as the body: see docs/api.md. */
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Frame, Store } from '../store/store.ts';
import { isOfFile, MAX_SYMBOL_FILE_BYTES, type SymbolFile } from '../symbols/symbol-files.ts';
import { SymbolError } from '../symbols/symbol-reader.ts';
import type { SymbolSources } from '../symbols/symbol-sources.ts';
import type { Inspected } from '../symbols/symbol-worker.ts';
import { HttpError } from './read-body.ts';
import type { SymbolsResult } from './types.ts';
import { checkOrigin, readFileName } from './uploads.ts';

type Ids = Pick<SymbolFile, 'fileId' | 'gnuBuildId'>;

export const SYMBOLS_PATH = '/api/v1/symbols';

const MAX_UPLOADS = 2;
/** The newest parts of the store in which what a file names is counted. */
const MAX_COUNTED_PARTS = 60;

export class SymbolRoute {
  readonly #sources: SymbolSources;
  readonly #store: Pick<Store, 'parts'>;
  readonly #now: () => number;
  #uploads = 0;

  constructor(sources: SymbolSources, store: Pick<Store, 'parts'>, now: () => number) {
    this.#sources = sources;
    this.#store = store;
    this.#now = now;
  }

  /** @throws HttpError */
  async answer(request: IncomingMessage, parameters: URLSearchParams): Promise<SymbolsResult> {
    checkOrigin(request);
    const fileName = readFileName(parameters);
    if (this.#uploads >= MAX_UPLOADS) throw new HttpError(503, 'other files are being sent: try again later');
    this.#uploads++;
    const path = this.#sources.files.incomingPath();
    try {
      await receive(request, path);
      const { sources, ...ids } = await this.#inspect(fileName, path);
      this.#sources.files.keep(path, ids, this.#now());
      return { fileName, ...ids, sources, ...(await this.#count(ids)) };
    } finally {
      this.#uploads--;
      await rm(path, { force: true });
    }
  }

  async #inspect(fileName: string, path: string): Promise<Inspected> {
    const inspected = await this.#sources.reader.ask({ kind: 'inspect', path }).catch((error: unknown) => {
      if (!(error instanceof SymbolError)) throw error;
      throw new HttpError(422, `${fileName} can't be read: ${error.message}`);
    });
    if (!('inspected' in inspected)) throw new Error('the symbol worker answered another question');
    if (inspected.inspected.sources.length > 0) return inspected.inspected;
    throw new HttpError(
      422,
      `${fileName} has no names: it was stripped; give the file before that, or its debug file (GNU build ID ` +
        `${inspected.inspected.gnuBuildId || 'none'})`,
    );
  }

  /** Places in stored stacks that arrived without a name and are of this file, and how many have one now. */
  async #count(ids: Ids): Promise<{ nameless: number; named: number }> {
    const parts = await this.#store.parts({ fromMs: 0, toMs: Number.MAX_SAFE_INTEGER });
    const nameless = new Map<string, Frame>();
    for (const part of parts.slice(-MAX_COUNTED_PARTS)) {
      for (const frame of (await part.stacks()).frames)
        if (isOfFile(frame, ids)) nameless.set(`${frame.binary} ${frame.name}`, frame);
    }
    const found = await this.#sources.names.resolve([...nameless.values()]);
    return { nameless: nameless.size, named: found.size };
  }
}

/** @throws HttpError when it is too large, is no ELF file, or ends early */
async function receive(request: IncomingMessage, path: string): Promise<void> {
  let bytes = 0;
  let problem: HttpError | undefined;
  const check = new Transform({
    transform(chunk: Buffer, _, done) {
      if (problem === undefined && bytes === 0 && chunk.length >= 4 && chunk.readUInt32BE(0) !== ELF_MAGIC)
        problem = new HttpError(422, 'this is no ELF file: give a program, a library or a debug file');
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
  try {
    await pipeline(request, check, createWriteStream(path, { mode: 0o600, flags: 'wx' }));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw code === 'ENOSPC' ? new HttpError(507, `there is no room for the file: ${message}`) : error;
  }
  if (problem !== undefined) throw problem;
}

const ELF_MAGIC = 0x7f454c46;
