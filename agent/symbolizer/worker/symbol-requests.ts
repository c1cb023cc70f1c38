/** Reads symbol tables of foreign files, in a worker, away from the main loop and its memory. */

import { DEFAULT_LIMITS } from '../../../common/symbols/dwarf/dwarf-source.ts';
import { openCache } from '../../files/cache-directory.ts';
import { answerFirst } from '../../workers/answer-first.ts';
import type { WorkerData, WorkHandler } from '../../workers/protocol.ts';
import { AnswerCache } from '../cache/answer-cache.ts';
import { TableStore } from '../cache/kept-tables.ts';
import { scratchRoomIn } from '../cache/scratch-file.ts';
import type { SymbolAnswer, SymbolRequest } from './messages.ts';
import { SymbolService } from './symbol-service.ts';

/** A section is held once as it stands in the file and once decompressed, beside all the rest of the agent. */
const DECOMPRESSED_SHARE = 1 / 4;

export function createSymbolHandler({
  cache,
  detail,
  maxMemory,
  scratch,
}: WorkerData): WorkHandler<SymbolRequest[], SymbolAnswer[]> {
  // what is kept on disk is as full as it can be
  const names = detail === 'full' ? cache : undefined;
  const service = new SymbolService(detail, {
    decompressedBytes: Math.min(DEFAULT_LIMITS.decompressedBytes, maxMemory * DECOMPRESSED_SHARE),
    cache: openCache(names, (path) => new AnswerCache(path)),
    room: scratch === undefined ? undefined : scratchRoomIn(scratch),
    tables: openCache(names, (path) => new TableStore(path)),
  });
  return {
    handle: (files) => answerFirst(files, (file) => service.resolve(file)),
    end: () => service.close(),
  };
}
