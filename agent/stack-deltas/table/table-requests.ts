/** Makes tables, in a worker. */
import { bufferSource } from '../../../common/base/byte-source.ts';
import { openCache } from '../../files/cache-directory.ts';
import type { DetectedRuntime } from '../../interpreters/contract.ts';
import type { WorkerData, WorkHandler } from '../../workers/protocol.ts';
import { buildFromFile, type FilePlace, type FileResult, RuntimeLooks } from './build-from-file.ts';
import { buildTable } from './build-table.ts';
import { TableCache } from './table-cache.ts';

export interface TableRequest {
  fd?: number;
  /** Of the file at `fd`. */
  place?: FilePlace;
  bytes?: Uint8Array;
  /** No table is made: a language runtime in it is told of, and no answer given. */
  isLook?: boolean;
}

export function createTableHandler({
  cache: directory,
}: WorkerData): WorkHandler<TableRequest, FileResult | undefined, DetectedRuntime> {
  const cache = openCache(directory, (path) => new TableCache(path));
  const looks = new RuntimeLooks();
  return {
    handle({ fd, place, bytes, isLook }, onRuntime) {
      if (fd !== undefined && isLook) {
        const runtime = looks.look(fd, place?.path);
        if (runtime) onRuntime(runtime);
        return undefined;
      }
      if (fd !== undefined) return buildFromFile(fd, { place, cache, looks, onRuntime });
      return {
        result: buildTable(bufferSource(bytes ?? new Uint8Array(0))),
        cache: { kind: 'unused', failed: false },
      };
    },
  };
}
