/**
 * Source files of this machine for the page. Which file is asked for comes from profiles, and so from strangers: what
 * is read lies below one of the directories that the collector's user named, symbolic links followed, and nothing else.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, readlink, realpath } from 'node:fs/promises';
import { isAbsolute, join, normalize, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAX_FILE_BYTES = 8 * 2 ** 20;
const MAX_PATH_LENGTH = 4096;
/** Of a path that is looked for below the directories: deeper ones are not searched for by their ends. */
const MAX_DEPTH = 32;
/** Around the wanted line. */
const MAX_LINES = 4000;
/** What is longer was made by a machine. */
const MAX_LINE_LENGTH = 500;

export interface SourceText {
  /** Where it was found. */
  path: string;
  modifiedMs: number;
  /** Lines of the file, the first that is given (from 1), and those. */
  lineCount: number;
  firstLine: number;
  lines: string[];
}

/** Why there is no text; a sentence for the person who asked. */
export interface NoSource {
  problem: string;
}

/** A `--source` directory that can't be one; the message says why. */
export class SourceDirectoryError extends Error {
  override name = 'SourceDirectoryError';
}

export class SourceFiles {
  static readonly NONE = new SourceFiles([], []);

  /** As they were named, and without symbolic links. */
  readonly #named: readonly string[];
  readonly #roots: readonly string[];

  private constructor(named: readonly string[], roots: readonly string[]) {
    this.#named = named;
    this.#roots = roots;
  }

  /** @throws SourceDirectoryError */
  static async open(directories: readonly string[]): Promise<SourceFiles> {
    const roots: string[] = [];
    for (const directory of directories) {
      const root = await realpath(directory).catch((error: Error) => {
        throw new SourceDirectoryError(`--source ${directory}: ${error.message}`);
      });
      if (root === '/')
        throw new SourceDirectoryError(
          `--source ${directory}: every file of this machine would be served: name the directory of the sources`,
        );
      await checkDirectory(directory, root);
      roots.push(root);
    }
    const named = directories.map((directory) => resolve(directory));
    return new SourceFiles(named, roots);
  }

  /**
   * @param name of the file, as a frame has it
   * @param line that is to be among the lines
   */
  async read(name: string, line: number): Promise<SourceText | NoSource> {
    if (this.#roots.length === 0)
      return {
        problem:
          'this collector shows no source files: start it with --source DIR for each directory that it may show',
      };
    let problem = '';
    for (const candidate of this.#candidates(name)) {
      const found = await this.#readCandidate(candidate, line);
      if ('lines' in found) return found;
      problem ||= found.problem;
    }
    return { problem: problem || `${name} is not below ${this.#roots.join(' or ')}: see --source` };
  }

  /** Where the file may be, the most exact place first. */
  #candidates(name: string): string[] {
    const path = pathOf(name);
    if (path === undefined) return [];
    const candidates: string[] = [];
    for (const root of [...this.#roots, ...this.#named]) if (isBelow(root, path)) candidates.push(path);
    // Built or run elsewhere: the end of its path is looked for. A bare name says too little, unless it is all there is.
    const parts = path.split('/').filter((part) => part !== '');
    if (parts.length > MAX_DEPTH) return candidates;
    const last = Math.max(0, parts.length - 2);
    for (let skipped = 0; skipped <= last; skipped++)
      for (const root of this.#roots) candidates.push(join(root, ...parts.slice(skipped)));
    return candidates;
  }

  async #readCandidate(candidate: string, line: number): Promise<SourceText | NoSource> {
    let file: FileHandle | undefined;
    try {
      const path = await realpath(candidate);
      const root = this.#roots.find((one) => isBelow(one, path));
      if (root === undefined)
        return { problem: `${candidate} leads to another place, which no --source names` };
      if (
        relative(root, path)
          .split('/')
          .some((part) => part.startsWith('.'))
      )
        return { problem: `${path} is hidden: files and directories that begin with a dot are not shown` };
      // Not blocking: a pipe would wait for its other end.
      file = await open(
        path,
        constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY,
      );
      // A directory on the way may have become a link meanwhile: what counts is what was opened.
      if ((await readlink(`/proc/self/fd/${file.fd}`)) !== path)
        return { problem: `${path} is being replaced: ask again` };
      return await readText(file, path, line);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return { problem: code === 'ENOENT' || code === 'ENOTDIR' ? '' : message };
    } finally {
      await file?.close();
    }
  }
}

async function checkDirectory(directory: string, root: string): Promise<void> {
  const handle = await open(root, constants.O_RDONLY | constants.O_DIRECTORY).catch((error: Error) => {
    throw new SourceDirectoryError(`--source ${directory}: ${error.message}`);
  });
  await handle.close();
}

/** Undefined for what is not a path of a file. */
function pathOf(name: string): string | undefined {
  if (name === '' || name.length > MAX_PATH_LENGTH || name.includes('\0')) return undefined;
  if (!name.startsWith('file:')) return normalize(name).replace(/^(?:\.\.\/)+/, '');
  try {
    return normalize(fileURLToPath(name));
  } catch {
    return undefined;
  }
}

function isBelow(root: string, path: string): boolean {
  return isAbsolute(path) && path.startsWith(`${root}/`) && !relative(root, path).startsWith('..');
}

async function readText(file: FileHandle, path: string, wanted: number): Promise<SourceText | NoSource> {
  const status = await file.stat();
  if (!status.isFile()) return { problem: `${path} is not a file` };
  if (status.size > MAX_FILE_BYTES)
    return { problem: `${path} has ${status.size} bytes: at most ${MAX_FILE_BYTES} are shown` };
  const bytes = Buffer.alloc(status.size);
  let length = 0;
  while (length < bytes.length) {
    const { bytesRead } = await file.read(bytes, length, bytes.length - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  const content = bytes.subarray(0, length);
  if (content.includes(0)) return { problem: `${path} is not text` };
  const all = content.toString('utf8').split(/\r\n|\r|\n/);
  if (all.at(-1) === '') all.pop();
  const first = Math.max(0, Math.min(Math.floor(wanted - MAX_LINES / 2), all.length - MAX_LINES));
  return {
    path,
    modifiedMs: status.mtimeMs,
    lineCount: all.length,
    firstLine: first + 1,
    lines: all.slice(first, first + MAX_LINES).map(shorten),
  };
}

const shorten = (line: string): string =>
  line.length > MAX_LINE_LENGTH ? `${line.slice(0, MAX_LINE_LENGTH)}…` : line;
