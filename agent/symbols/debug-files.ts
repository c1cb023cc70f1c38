/** Opens the files that an ELF file refers to for its symbols, in the places where distributions put them. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { type ByteSource, bufferSource } from '../../common/elf/source.ts';
import type { FileAccess, FileRequest } from '../../common/symbols/source.ts';
import { fdSource } from '../stack-deltas/fd-source.ts';

const DEBUG_ROOT = '/usr/lib/debug';
const MAX_OPEN_FILES = 16;
const MAX_DWO_BYTES = 256 << 20;

export class DebugFiles implements FileAccess {
  readonly #path: string;
  readonly #fds: number[] = [];

  /** Of the ELF file that refers to them. */
  constructor(path: string) {
    this.#path = path;
  }

  open(request: FileRequest): ByteSource | undefined {
    if (this.#fds.length >= MAX_OPEN_FILES) return undefined;
    for (const path of candidates(request, this.#path)) {
      const fd = openRegular(path);
      if (fd === undefined) continue;
      if (request.kind === 'dwo') return readWhole(fd);
      this.#fds.push(fd);
      return fdSource(fd);
    }
    return undefined;
  }

  close(): void {
    for (const fd of this.#fds.splice(0)) closeSync(fd);
  }
}

function candidates(request: FileRequest, path: string): string[] {
  const directory = dirname(path);
  switch (request.kind) {
    case 'debuglink': {
      const name = basename(request.name);
      return [join(directory, name), join(directory, '.debug', name), join(DEBUG_ROOT, directory, name)];
    }
    case 'build-id':
      return [buildIdPath(request.buildId)];
    case 'dwz': {
      const direct = isAbsolute(request.path) ? request.path : join(directory, request.path);
      return [direct, buildIdPath(request.buildId), join(DEBUG_ROOT, '.dwz', basename(request.path))];
    }
    case 'dwo':
      return [
        isAbsolute(request.path) ? request.path : join(request.directory, request.path),
        join(directory, basename(request.path)),
      ];
    case 'dwp':
      return [`${path}.dwp`];
  }
}

const buildIdPath = (buildId: string): string =>
  join(DEBUG_ROOT, '.build-id', buildId.slice(0, 2), `${buildId.slice(2)}.debug`);

/** Without waiting for the other end of a pipe; what is no regular file is none. */
function openRegular(path: string): number | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return undefined;
}

/** There may be thousands of them, one a unit: they are small and don't stay open. */
function readWhole(fd: number): ByteSource | undefined {
  try {
    return fstatSync(fd).size <= MAX_DWO_BYTES ? bufferSource(readFileSync(fd)) : undefined;
  } finally {
    closeSync(fd);
  }
}
