/** What is asked of a worker, and what it answers. */
import type { NamedRange } from '../../../common/symbols/source.ts';
import type { FileStats } from '../../files/file-pool.ts';
import type { RootRequest } from './open-files.ts';

/** `full`: inlined functions and lines; `names`: functions only; `off`: addresses only. */
export type SymbolDetail = 'full' | 'names' | 'off';

export interface SymbolRequest {
  /** What the kernel knows the file by: a copy is another one, and so is one that was changed. */
  key: string;
  fileId: string;
  /** Which processes ask, see RootViews. */
  view: number;
  /** An open descriptor of the file, or its bytes; without either only a table that is still there answers. */
  fd?: number;
  bytes?: Uint8Array;
  /** The descriptor's file is a copy in memory, whose room is wanted again: it is closed with the answer. */
  isCopy?: boolean;
  /** Where the files lie that it names: an open descriptor of the root directory of the view, or the agent's own. */
  root: RootRequest;
  /** Debug information that was fetched for it: where it lies on the host, by build ID. */
  fetched?: Readonly<Record<string, string>> | undefined;
  /** Where the file lies in that root, for the files beside it. */
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
