/** Names that were found before, in an earlier run too. */

import { fstatSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import type { NamedRange } from '../../../common/symbols/source.ts';
import type { Probe } from '../../files/file-pool.ts';
import { identityOf, ownRoot } from '../../files/root-directory.ts';
import { OWN_VIEW } from '../../processes/root-views.ts';
import type { AnswerCache, Answers } from '../cache/answer-cache.ts';
import type { SymbolRequest } from './messages.ts';
import { closeRoot, openRoot, type RootRequest } from './open-files.ts';

const MAX_EXECUTABLES = 64;

/** Answers for one file. */
export interface CachedSymbols {
  readonly key: string;
  readonly answers: Answers;
}

/** Names that are new, and what they depend on. */
export interface FoundNames {
  addresses: Float64Array;
  names: readonly NamedRange[];
  probes: readonly Probe[] | undefined;
  /** Build IDs. */
  missing: readonly string[];
}

export class SymbolCache {
  readonly #cache: AnswerCache;
  readonly #known = new LRUCache<string, CachedSymbols>({
    max: MAX_EXECUTABLES,
    dispose: ({ key, answers }) => this.#cache.saveAll(key, answers),
  });

  constructor(cache: AnswerCache) {
    this.#cache = cache;
  }

  /** Undefined for what is not an open file. */
  of(request: SymbolRequest): CachedSymbols | undefined {
    const key = keyOf(request);
    if (key === undefined) return undefined;
    const ofView = `${key} ${request.view}`;
    let known = this.#known.get(ofView);
    if (!known) {
      known = { key, answers: this.#load(key, request.root) };
      this.#known.set(ofView, known);
    }
    return known;
  }

  keep({ key, answers }: CachedSymbols, { addresses, names, probes, missing }: FoundNames): void {
    for (let i = 0; i < addresses.length; i++) answers.add(addresses[i]!, names[i]!);
    for (const buildId of missing) answers.missing.add(buildId);
    answers.dependOn(probes);
    this.#cache.save(key, answers);
  }

  /** Writes what is not on disk yet. */
  close(): void {
    this.#known.clear();
  }

  #load(key: string, request: RootRequest): Answers {
    const root = openRoot(request);
    try {
      return this.#cache.load(
        key,
        (where, path) => (where === 'host' ? ownRoot() : root)?.identify(path) ?? '',
      );
    } finally {
      closeRoot(root);
    }
  }
}

/** The file itself, what was fetched for it, and whether other files were looked for in a root, the agent's own or another. */
export function keyOf({ fileId, fd, view, root, path, fetched = {} }: SymbolRequest): string | undefined {
  if (fd === undefined) return undefined;
  const identity = identityOf(fstatSync(fd, { bigint: true }));
  const from = root === undefined ? '' : view === OWN_VIEW ? 'own' : 'root';
  return JSON.stringify([fileId, identity, path, from, Object.entries(fetched)]);
}
