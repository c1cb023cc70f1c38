/** The table of an open file: from an earlier run, or made of the file and of that with its debug information. */
import { fstatSync } from 'node:fs';
import { type ByteSource, OutOfBounds } from '../../../common/base/byte-source.ts';
import { ElfError, type ElfFile, parseElf } from '../../../common/elf/elf.ts';
import { computeFileId } from '../../../common/elf/file-id.ts';
import type { FileAccess } from '../../../common/symbols/source.ts';
import { DebugFiles } from '../../files/debug-files.ts';
import { fdSource } from '../../files/fd-source.ts';
import { FilePool } from '../../files/file-pool.ts';
import { type FileOwner, identityOf, ownRoot } from '../../files/root-directory.ts';
import type { DetectedRuntime } from '../../interpreters/contract.ts';
import { type Detection, detectRuntime } from '../../runtimes/registry.ts';
import { type BuildResult, buildTable } from './build-table.ts';
import type { CachedTable, TableCache } from './table-cache.ts';

/** Their tables are made right after the last one was looked at. */
const MAX_LOOKS = 64;

/** Where the file was found. */
export interface FilePlace {
  /** It is that path in the agent's own root. What a process's root has beside it holds for that process, and tables for all. */
  isOwn: boolean;
  path: string;
  /** It is a copy in memory: another one next time, so that no table of it is kept. */
  isCopy?: boolean;
}

/** What became of the table on disk. */
export interface CacheUse {
  kind: CachedTable['kind'] | 'unused';
  /** It could not be written. */
  failed: boolean;
}

export interface FileResult {
  result: BuildResult;
  cache: CacheUse;
}

export interface FileOptions {
  place: FilePlace | undefined;
  cache: TableCache | undefined;
  looks?: RuntimeLooks;
  /** As in {@link BuildOptions}. */
  onRuntime?: (runtime: DetectedRuntime) => void;
}

/** Files that were only looked at for a runtime. What was found is kept until their tables are made. */
export class RuntimeLooks {
  readonly #found = new Map<string, Detection>();

  /** Undefined where none is known. */
  look(fd: number, path: string | undefined): DetectedRuntime | undefined {
    const elf = tryParse(fdSource(fd));
    if (!elf) return undefined;
    if (this.#found.size >= MAX_LOOKS) this.#found.clear();
    const detection = detectRuntime(elf, path);
    this.#found.set(identityOf(fstatSync(fd, { bigint: true })), detection);
    return detection.runtime;
  }

  take(identity: string): Detection | undefined {
    const detection = this.#found.get(identity);
    this.#found.delete(identity);
    return detection;
  }
}

export function buildFromFile(fd: number, options: FileOptions): FileResult {
  const { place, looks, onRuntime } = options;
  const cache = place?.isCopy ? undefined : options.cache;
  const before = fstatSync(fd, { bigint: true });
  const source = fdSource(fd);
  const elf = cache && tryParse(source);
  const key = elf ? `${computeFileId(source)} ${identityOf(before)}` : '';
  const cached = elf ? cache.load(key, elf.machine) : ({ kind: 'unused' } as const);
  const result = withDebugFiles(place, before, (files) =>
    buildTable(source, {
      path: place?.path,
      files,
      cached: cached.kind === 'found' ? cached.unwind : undefined,
      detected: looks?.take(identityOf(before)),
      onRuntime,
    }),
  );
  if (identityOf(fstatSync(fd, { bigint: true })) !== identityOf(before))
    return {
      result: { kind: 'broken', reason: 'it changed while it was read' },
      cache: { kind: 'unused', failed: false },
    };
  const isNew = elf && cached.kind !== 'found' && result.kind === 'built';
  const isKept = isNew && result.executable.table && !result.executable.usesSeparate;
  const failed = isKept ? !cache.save(key, result.executable) : false;
  return { result, cache: { kind: cached.kind, failed } };
}

/** What is not an ELF file is told by the attempt to make its table. */
function tryParse(source: ByteSource): ElfFile | undefined {
  try {
    return parseElf(source);
  } catch (error) {
    if (error instanceof ElfError || error instanceof OutOfBounds) return undefined;
    throw error;
  }
}

/** Nothing is opened unless it is asked for: few files need another one for their rules. */
function withDebugFiles<T>(
  place: FilePlace | undefined,
  owner: FileOwner,
  use: (files: FileAccess | undefined) => T,
): T {
  if (!place) return use(undefined);
  const { path, isOwn } = place;
  const pool = new FilePool();
  try {
    const root = isOwn ? ownRoot() : undefined;
    return use({
      open: (request, accepts) => new DebugFiles({ path, root, owner }, pool).open(request, accepts),
    });
  } finally {
    pool.close();
  }
}
