import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { MAX_RECENT_REQUESTS, RECENT_REQUESTS_MS } from '../store/store.ts';

const ID_LENGTH = 22;

/** What identifies a request: 132 bits of the SHA-256 of its bytes, decompressed. */
export function requestId(...body: readonly (Uint8Array | string)[]): string {
  const hash = createHash('sha256');
  for (const bytes of body) hash.update(bytes);
  return hash.digest('base64url').slice(0, ID_LENGTH);
}

/**
 * What was answered to the requests of late. A sender that got no answer in time sends the same bytes again; they
 * get the same answer and are not stored a second time. See docs/decisions/retried-requests.md.
 */
export class RecentRequests<Answer extends object> {
  readonly #answers: LRUCache<string, Answer>;

  constructor(now: () => number) {
    this.#answers = new LRUCache({
      max: MAX_RECENT_REQUESTS,
      ttl: RECENT_REQUESTS_MS,
      ttlResolution: 0,
      perf: { now },
    });
  }

  /** Does not make it more recent: a sender can't keep what it repeats for ever. */
  answerTo(id: string): Answer | undefined {
    return this.#answers.peek(id);
  }

  note(id: string, answer: Answer): void {
    this.#answers.set(id, answer);
  }
}
