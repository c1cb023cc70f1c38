/**
 * Executables that are open for their names. What is found of one may depend on the root in which its debug information
 * is looked for, so it is kept by the view that its processes have (RootViews). Another view shares it as long as every
 * path that was tried leads there to the very same file, or to none.
 */

import { closeSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import type { Probe } from '../../files/file-pool.ts';
import { ownRoot, RootDirectory } from '../../files/root-directory.ts';
import type { ScratchFile } from '../cache/scratch-file.ts';
import type { OpenSymbols } from './open-symbols.ts';

/** A directory in which paths are looked up: a descriptor, or the agent's own. */
export type RootRequest = number | 'own' | undefined;

export interface OpenFile {
  symbols: OpenSymbols;
  /** Its own, since what is read later is read later. */
  fd: number | undefined;
  root: RootDirectory | undefined;
  fetched: number;
  scratch: ScratchFile | undefined;
}

/** File and view that names are asked for. */
export interface Asker {
  /** The key of the file in the kernel. */
  key: string;
  view: number;
  root: RootRequest;
}

/** Each has four descriptors (itself, its root, tables of this run and of earlier ones), and up to four of debug information. */
const MAX_FILES = 64;
/** Limit of pairs of file and view of which it is known whose answers they share. */
const MAX_SHARING = 4096;

interface Sharing {
  /** The view whose file it is. */
  view: number;
  /** So many of its probes lead to the same. */
  agreed: number;
}

export class OpenFiles {
  readonly #files: LRUCache<string, OpenFile>;
  readonly #sharing = new LRUCache<string, Sharing>({ max: MAX_SHARING });
  /** By file: the view in which it was opened first. */
  readonly #first = new LRUCache<string, number>({ max: MAX_SHARING });

  constructor(maxBytes: number) {
    this.#files = new LRUCache({
      max: MAX_FILES,
      maxSize: maxBytes,
      // One that is larger than half of the room leaves the other half to the others: reading it again costs seconds.
      sizeCalculation: ({ symbols }) => Math.min(symbols.byteLength + 256, Math.floor(maxBytes / 2)),
      dispose: closeFile,
    });
  }

  /** Undefined where none is open whose names are right for the one who asks. */
  get(asker: Asker): OpenFile | undefined {
    const own = this.#files.get(keyOf(asker));
    if (own) return own;
    const view = this.#sharing.get(keyOf(asker))?.view ?? this.#first.get(asker.key);
    const file = view === undefined ? undefined : this.#files.get(keyOf({ ...asker, view }));
    return file && this.#agrees(file, view!, asker) ? file : undefined;
  }

  /** Does what it found by now hold for the one who asks? It may have opened more files since {@link get}. */
  isRightFor(file: OpenFile, asker: Asker): boolean {
    if (this.#files.get(keyOf(asker)) === file) return true;
    const view = this.#sharing.get(keyOf(asker))?.view;
    return view !== undefined && this.#agrees(file, view, asker);
  }

  /** Keeps the open file of `asker`; the one that it had is closed. */
  put(asker: Asker, file: OpenFile): void {
    this.#files.delete(keyOf(asker));
    this.#files.set(keyOf(asker), file);
    this.#sharing.delete(keyOf(asker));
    if (this.#first.get(asker.key) === undefined) this.#first.set(asker.key, asker.view);
  }

  /** It has grown: set again, as another object, since for the same one the cache does not ask for its size. */
  resize(asker: Asker, file: OpenFile): void {
    const view = this.#files.get(keyOf(asker)) === file ? asker.view : this.#sharing.get(keyOf(asker))?.view;
    if (view === undefined) return;
    this.#files.set(keyOf({ ...asker, view }), { ...file }, { noDisposeOnSet: true });
  }

  clear(): void {
    this.#files.clear();
  }

  #agrees({ symbols: { probes }, root }: OpenFile, view: number, asker: Asker): boolean {
    const key = keyOf(asker);
    const agreed = this.#sharing.get(key)?.agreed ?? 0;
    // without a root nothing was looked for in one
    if (!probes || (!root && asker.root !== undefined) || !leadToTheSame(probes.slice(agreed), asker.root)) {
      this.#sharing.delete(key);
      return false;
    }
    this.#sharing.set(key, { view, agreed: probes.length });
    return true;
  }
}

const keyOf = ({ key, view }: Pick<Asker, 'key' | 'view'>): string => `${key} ${view}`;

/** Throws where the descriptor is of no directory. */
export const openRoot = (root: RootRequest): RootDirectory | undefined => {
  if (root === 'own') return ownRoot();
  return root === undefined ? undefined : RootDirectory.copyOf(root);
};

export function closeRoot(root: RootDirectory | undefined): void {
  if (root !== ownRoot()) root?.close();
}

/** Is what they led to what they lead to in that root? Those of the host lead everybody to the same. */
export function leadToTheSame(probes: readonly Probe[], root: RootRequest): boolean {
  const ofRoot = probes.filter(({ where }) => where === 'root');
  if (ofRoot.length === 0) return true;
  const directory = openRoot(root);
  try {
    return ofRoot.every(({ path, identity }) => (directory?.identify(path) ?? '') === identity);
  } finally {
    closeRoot(directory);
  }
}

export function closeFile({ symbols, fd, root, scratch }: OpenFile): void {
  symbols.close();
  scratch?.close();
  closeRoot(root);
  if (fd !== undefined) closeSync(fd);
}
