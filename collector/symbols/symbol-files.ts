/** The ELF and debug files that people gave: kept in a directory, the oldest leaves first. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Frame } from '../store/store.ts';

export const MAX_SYMBOL_FILE_BYTES = 2 ** 30;
/** Of all files; at least the newest stays. */
const MAX_TOTAL_BYTES = 4 * 2 ** 30;

export interface SymbolFile {
  path: string;
  /** 32 hex digits: see computeFileId. */
  fileId: string;
  /** Hex, '' if it has none. */
  gnuBuildId: string;
  bytes: number;
  keptMs: number;
}

const NAME = /^([0-9a-f]{32})\.([0-9a-f]{2,128}|none)\.elf$/;

export class SymbolFiles {
  readonly #isTemporary: boolean;
  #directory: string | undefined;
  #incoming = 0;
  #files: SymbolFile[] = [];
  /** Grows with every change. */
  generation = 0;

  /** `directory`: undefined for a temporary one, made when it is needed and removed by `close`. */
  constructor(directory: string | undefined) {
    this.#isTemporary = directory === undefined;
    this.#directory = directory;
    if (directory !== undefined) this.#files = readKept(directory);
  }

  get files(): readonly SymbolFile[] {
    return this.#files;
  }

  /** Where a file can be written before it is kept; the caller removes what it does not keep. */
  incomingPath(): string {
    this.#directory ??= mkdtempSync(join(tmpdir(), 'everyframe-symbols-'));
    if (!existsSync(this.#directory)) mkdirSync(this.#directory, { mode: 0o700 });
    return join(this.#directory, `incoming-${process.pid}-${this.#incoming++}`);
  }

  /** Takes over a file that was written to `incomingPath`. */
  keep(incoming: string, ids: Pick<SymbolFile, 'fileId' | 'gnuBuildId'>, nowMs: number): void {
    const path = join(this.#directory!, `${ids.fileId}.${ids.gnuBuildId || 'none'}.elf`);
    renameSync(incoming, path);
    utimesSync(path, nowMs / 1000, nowMs / 1000);
    this.#files = this.#files.filter((file) => file.path !== path);
    this.#files.push({ path, ...ids, bytes: statSync(path).size, keptMs: nowMs });
    this.generation++;
    while (this.#files.length > 1 && sizeOf(this.#files) > MAX_TOTAL_BYTES) this.#remove(this.#files[0]!);
  }

  /** Those that know a binary: see `Frame.binary`. */
  find(binary: string): SymbolFile[] {
    return this.#files.filter((file) => isOfFile({ binary }, file));
  }

  close(): void {
    if (this.#isTemporary && this.#directory !== undefined)
      rmSync(this.#directory, { recursive: true, force: true });
  }

  #remove(file: SymbolFile): void {
    this.#files = this.#files.filter((other) => other !== file);
    rmSync(file.path, { force: true });
  }
}

/** The same file, or its separate debug file. */
export function isOfFile(
  { binary }: Pick<Frame, 'binary'>,
  { fileId, gnuBuildId }: Pick<SymbolFile, 'fileId' | 'gnuBuildId'>,
): boolean {
  const [ofFile, ofBuild] = binary?.split('/') ?? [];
  return (fileId !== '' && fileId === ofFile) || (gnuBuildId !== '' && gnuBuildId === ofBuild);
}

const sizeOf = (files: readonly SymbolFile[]): number => files.reduce((sum, { bytes }) => sum + bytes, 0);

/** What an earlier process kept, the oldest first; what it did not finish is removed. */
function readKept(directory: string): SymbolFile[] {
  const found: SymbolFile[] = [];
  for (const name of listNames(directory)) {
    const path = join(directory, name);
    const [, fileId, gnuBuildId] = NAME.exec(name) ?? [];
    if (name.startsWith('incoming-')) unlinkSync(path);
    if (fileId === undefined || gnuBuildId === undefined) continue;
    const { size, mtimeMs } = statSync(path);
    found.push({
      path,
      fileId,
      gnuBuildId: gnuBuildId === 'none' ? '' : gnuBuildId,
      bytes: size,
      keptMs: mtimeMs,
    });
  }
  return found.sort((a, b) => a.keptMs - b.keptMs);
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
