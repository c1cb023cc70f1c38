/** Makes tables, in a worker thread. */
import { bufferSource } from '../../common/elf/source.ts';
import type { DetectedRuntime } from '../interpreters/contract.ts';
import { openCache } from '../symbols/cache-directory.ts';
import type { WorkerData, WorkHandler } from '../workers/protocol.ts';
import { buildFromFile, type FilePlace, type FileResult } from './build-from-file.ts';
import { buildTable } from './build-table.ts';
import { TableCache } from './table-cache.ts';

export interface TableRequest {
  fd?: number;
  /** Of the file at `fd`. */
  place?: FilePlace;
  bytes?: Uint8Array;
}

export function createTableHandler({
  cache: directory,
}: WorkerData): WorkHandler<TableRequest, FileResult, DetectedRuntime> {
  const cache = openCache(directory, (path) => new TableCache(path));
  return {
    handle({ fd, place, bytes }, onRuntime) {
      if (fd !== undefined) return buildFromFile(fd, { place, cache, onRuntime });
      return {
        result: buildTable(bufferSource(bytes ?? new Uint8Array(0))),
        cache: { kind: 'unused', failed: false },
      };
    },
    transfer({ result }) {
      const image = result.kind === 'built' ? result.executable.table?.image : undefined;
      return image ? [image.buffer as ArrayBuffer] : [];
    },
  };
}
