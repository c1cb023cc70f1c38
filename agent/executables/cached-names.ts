/** Answers requests for names from what an earlier run found, where all of it is known. */
import { fstatSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import type { SymbolFrame } from '../../common/symbols/source.ts';
import type { AnswerCache, Answers, Probe } from '../symbols/answer-cache.ts';
import { noStats } from '../symbols/file-pool.ts';
import { identityOf, ownRoot, RootDirectory } from '../symbols/root-directory.ts';
import type { SymbolAnswer, SymbolRequest } from './symbol-service.ts';

const MAX_EXECUTABLES = 64;

export class CachedNames {
  readonly #cache: AnswerCache;
  readonly #answers = new LRUCache<string, Answers>({ max: MAX_EXECUTABLES });

  constructor(cache: AnswerCache) {
    this.#cache = cache;
  }

  /** Undefined where an address is not known. */
  answer(request: SymbolRequest): SymbolAnswer | undefined {
    const answers = this.#answersFor(request);
    if (!answers) return undefined;
    const chains: SymbolFrame[][] = [];
    for (const address of request.addresses) {
      const chain = answers.chains.get(address);
      if (!chain) return undefined;
      chains.push(chain);
    }
    const debugFiles = { ...noStats(), missing: [...answers.missing] };
    return { kind: 'frames', chains, cached: chains.length, debugFiles };
  }

  keep(
    request: SymbolRequest,
    chains: readonly SymbolFrame[][],
    probes: readonly Probe[] | undefined,
    missing: readonly string[],
  ): void {
    const answers = this.#answersFor(request);
    if (!answers) return;
    for (const [i, address] of request.addresses.entries()) answers.add(address, chains[i]!);
    for (const buildId of missing) answers.missing.add(buildId);
    answers.dependOn(probes);
    this.#cache.save(keyOf(request)!, answers);
  }

  #answersFor(request: SymbolRequest): Answers | undefined {
    const key = keyOf(request);
    if (key === undefined) return undefined;
    let answers = this.#answers.get(key);
    if (!answers) {
      answers = this.#load(key, request.root);
      this.#answers.set(key, answers);
    }
    return answers;
  }

  #load(key: string, rootFd: number | undefined): Answers {
    let root: RootDirectory | undefined;
    try {
      if (rootFd !== undefined) root = new RootDirectory(`/proc/self/fd/${rootFd}`);
      return this.#cache.load(
        key,
        (where, path) => (where === 'host' ? ownRoot() : root)?.identify(path) ?? '',
      );
    } finally {
      root?.close();
    }
  }
}

/** The file itself, and what was fetched for it. */
function keyOf({ fileId, fd, path, fetched = {} }: SymbolRequest): string | undefined {
  if (fd === undefined) return undefined;
  return JSON.stringify([fileId, identityOf(fstatSync(fd, { bigint: true })), path, Object.entries(fetched)]);
}
