/** Requests to a symbol worker, and its answers. */
import type { NamedRange } from '../../../common/symbols/source.ts';
import type { FileStats } from '../../files/file-pool.ts';
import type { RootRequest } from './open-files.ts';

/** `full`: inlined functions and lines; `names`: functions only; `off`: addresses only. */
export type SymbolDetail = 'full' | 'names' | 'off';

export interface SymbolRequest {
  /** The kernel's key of the file: a copy has another one, and so has a changed file. */
  key: string;
  fileId: string;
  /** The view of the processes that ask, see RootViews. */
  view: number;
  /** An open descriptor of the file, or its bytes; without either only a table that is still there answers. */
  fd?: number;
  bytes?: Uint8Array;
  /** The descriptor's file is a copy in memory, whose room is wanted again: it is closed with the answer. */
  isCopy?: boolean;
  /** Root for the files that it names: an open descriptor of the view's root directory, or the agent's own. */
  root: RootRequest;
  /** Debug information that was fetched for it: where it lies on the host, by build ID. */
  fetched?: Readonly<Record<string, string>> | undefined;
  /** Path of the file in that root, for the files beside it. */
  path: string;
  /** ELF virtual addresses. */
  addresses: Float64Array;
}

export type SymbolAnswer =
  /**
   * By address; without frames where nothing covers it. `cached` of them were found before, in an earlier run too.
   * `debugFiles`: since the last answer.
   */
  | { kind: 'names'; names: NamedRange[]; cached: number; debugFiles: FileStats }
  /** Ask again with the file. */
  | { kind: 'need-file' }
  /** No ELF file that can be handled; the reason is a sentence. */
  | { kind: 'unreadable'; reason: string };
