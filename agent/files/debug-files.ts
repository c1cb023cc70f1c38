/**
 * Opens the files that an ELF file refers to for its symbols. Two places are kept apart: a root in which any path that
 * the file names may lead to something; and the debug directory of the host, where only a build ID is looked for. Of
 * neither is anything believed that somebody else than root and the ELF file's owner can change.
 */
import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DebugFile, FileAccess, FileRequest } from '../../common/symbols/source.ts';
import type { FilePool } from './file-pool.ts';
import { type FileOwner, ownRoot, type Reader, type RootDirectory } from './root-directory.ts';

/** Its administrator put it there. */
const ANYBODY: Reader = { uid: 0n };
const DEBUG_ROOT = '/usr/lib/debug';

/** Location of an ELF file, from which the files that it names are looked up. */
export interface ElfPlace {
  /** In the root, from "/". */
  path: string;
  /** Undefined where it can't be had: then only the host's debug directory is left. */
  root: RootDirectory | undefined;
  /** Owner of the ELF file: it may name what they can read. */
  owner: FileOwner;
  /** Debug information that was fetched for it: where it lies on the host, by build ID. */
  fetched?: Readonly<Record<string, string>>;
}

/** Location of a file that a person names. */
export function placeOf(path: string): ElfPlace {
  return { path: realpathSync(path), root: ownRoot(), owner: statSync(path, { bigint: true }) };
}

export class DebugFiles implements FileAccess {
  readonly #place: ElfPlace;
  readonly #pool: FilePool;
  readonly #dwpBeside: readonly string[];

  /** `dwpBeside`: paths of the ELF files that the DWARF describes. */
  constructor(place: ElfPlace, pool: FilePool, dwpBeside = [place.path]) {
    this.#place = place;
    this.#pool = pool;
    this.#dwpBeside = dwpBeside;
  }

  open(request: FileRequest, accepts: (file: DebugFile) => boolean = () => true): DebugFile | undefined {
    const { root, owner, fetched } = this.#place;
    const known = 'buildId' in request && fetched?.[request.buildId];
    const brought = known ? this.#openFetched(known) : undefined;
    if (brought) return accepts(brought) ? brought : undefined;
    for (const [where, path] of this.#candidates(request)) {
      const directory = where === 'host' ? ownRoot() : root;
      if (!directory) continue;
      const reader = where === 'host' ? ANYBODY : { uid: owner.uid };
      const file = this.#pool.add(() => directory.openRegular(path, owner, reader), where, path);
      if (!file) continue;
      const place = { ...this.#place, path, root: directory, owner: file.owner };
      const files = new DebugFiles(place, this.#pool, [path, ...this.#dwpBeside]);
      const found = { source: file.source, identity: file.identity, files };
      if (accepts(found)) return found;
    }
    if ('buildId' in request) this.#pool.noteMissing(request.buildId);
    return undefined;
  }

  /** It came from elsewhere: of the files that it names only those with a build ID are looked for. */
  #openFetched(path: string): DebugFile | undefined {
    const file = this.#pool.add(() => ownRoot().openRegular(path, undefined, ANYBODY), 'host', path);
    const place = { ...this.#place, path, root: undefined };
    const files = new DebugFiles(place, this.#pool, []);
    return file && { source: file.source, identity: file.identity, files };
  }

  #candidates(request: FileRequest): ['host' | 'root', string][] {
    const directory = dirname(this.#place.path);
    switch (request.kind) {
      case 'build-id':
        return this.#buildIdPaths(request.buildId);
      case 'debuglink': {
        const name = basename(request.name);
        const names = [
          join(directory, name),
          join(directory, '.debug', name),
          join(DEBUG_ROOT, directory, name),
        ];
        return names.map((path) => ['root', path]);
      }
      case 'dwz':
        return [
          ['root', resolveFrom(directory, request.path)],
          ...this.#buildIdPaths(request.buildId),
          ['root', join(DEBUG_ROOT, '.dwz', basename(request.path))],
        ];
      case 'dwo':
        return [
          ['root', resolveFrom(directory, request.directory, request.path)],
          ['root', join(directory, basename(request.path))],
        ];
      case 'dwp':
        return this.#dwpBeside.map((path) => ['root', `${path}.dwp`]);
    }
  }

  /** The host's first: its administrator put it there, while the process's root may be whoever's. */
  #buildIdPaths(buildId: string): ['host' | 'root', string][] {
    if (!/^[0-9a-f]{4,128}$/.test(buildId)) return [];
    const path = join(DEBUG_ROOT, '.build-id', buildId.slice(0, 2), `${buildId.slice(2)}.debug`);
    return this.#place.root === ownRoot()
      ? [['host', path]]
      : [
          ['host', path],
          ['root', path],
        ];
  }
}

/** As path.resolve, but never from the agent's own working directory: the first one is absolute. */
const resolveFrom = (directory: string, ...paths: string[]): string =>
  paths.reduce((from, path) => (path.startsWith('/') ? path : join(from, path)), directory);
