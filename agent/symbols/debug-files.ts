/**
 * Opens the files that an ELF file refers to for its symbols. Two places are kept apart: the root of the process
 * that runs the file, in which any path that the file names may lead to something; and the debug directory of the
 * host, where only a build ID is looked for.
 */
import { type BigIntStats, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DebugFile, FileAccess, FileRequest } from '../../common/symbols/source.ts';
import type { FilePool } from './file-pool.ts';
import { isReadableBy, ownRoot, type RootDirectory } from './root-directory.ts';

const DEBUG_ROOT = '/usr/lib/debug';

/** Where an ELF file lies, for the files that it names. */
export interface ElfPlace {
  /** In the root, from "/". */
  path: string;
  /** Undefined where it can't be had: then only the host's debug directory is left. */
  root: RootDirectory | undefined;
  /** Who owns the ELF file: it may name what they can read. */
  uid: bigint;
  /** Only files of the same owner or of root are opened: what they say is used for all who run the ELF file. */
  ownerOnly?: boolean;
  /** Debug information that was fetched for it: where it lies on the host, by build ID. */
  fetched?: Readonly<Record<string, string>>;
}

/** Of a file that a person names. */
export function placeOf(path: string): ElfPlace {
  const { uid } = statSync(path, { bigint: true });
  return { path: realpathSync(path), root: ownRoot(), uid };
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
    const { root, uid, ownerOnly, fetched } = this.#place;
    const known = 'buildId' in request && fetched?.[request.buildId];
    const brought = known ? this.#openFetched(known) : undefined;
    if (brought) return accepts(brought) ? brought : undefined;
    for (const [where, path] of this.#candidates(request)) {
      const directory = where === 'host' ? ownRoot() : root;
      if (!directory) continue;
      const mayRead = (stats: BigIntStats) =>
        where === 'host' || (isReadableBy(uid, stats) && (!ownerOnly || isOwn(uid, stats)));
      const file = this.#pool.add(() => directory.openRegular(path, mayRead), where, path);
      if (!file) continue;
      const place = { ...this.#place, path, root: directory, uid: file.uid };
      const files = new DebugFiles(place, this.#pool, [path, ...this.#dwpBeside]);
      const found = { source: file.source, identity: file.identity, files };
      if (accepts(found)) return found;
    }
    if ('buildId' in request) this.#pool.noteMissing(request.buildId);
    return undefined;
  }

  /** It came from elsewhere: of the files that it names only those with a build ID are looked for. */
  #openFetched(path: string): DebugFile | undefined {
    const file = this.#pool.add(() => ownRoot().openRegular(path, () => true), 'host', path);
    const place = { ...this.#place, path, root: undefined };
    const files = new DebugFiles(place, this.#pool, []);
    return file && { source: file.source, identity: file.identity, files };
  }

  #candidates(request: FileRequest): ['host' | 'root', string][] {
    const directory = dirname(this.#place.path);
    switch (request.kind) {
      case 'build-id':
        return buildIdPaths(request.buildId);
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
          ...buildIdPaths(request.buildId),
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
}

const isOwn = (uid: bigint, stats: BigIntStats): boolean => stats.uid === uid || stats.uid === 0n;

/** As path.resolve, but never from the agent's own working directory: the first one is absolute. */
const resolveFrom = (directory: string, ...paths: string[]): string =>
  paths.reduce((from, path) => (path.startsWith('/') ? path : join(from, path)), directory);

/** The host's first: its administrator put it there, while the process's root may be whoever's. */
function buildIdPaths(buildId: string): ['host' | 'root', string][] {
  if (!/^[0-9a-f]{4,128}$/.test(buildId)) return [];
  const path = join(DEBUG_ROOT, '.build-id', buildId.slice(0, 2), `${buildId.slice(2)}.debug`);
  return [
    ['host', path],
    ['root', path],
  ];
}
