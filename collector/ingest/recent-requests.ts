import { createHash } from 'node:crypto';
import { MAX_RECENT_REQUESTS, RECENT_REQUESTS_MS } from '../store/store.ts';

const ID_LENGTH = 22;

/** What identifies a request: 132 bits of the SHA-256 of its bytes, decompressed. */
export function requestId(...body: readonly (Uint8Array | string)[]): string {
  const hash = createHash('sha256');
  for (const bytes of body) hash.update(bytes);
  return hash.digest('base64url').slice(0, ID_LENGTH);
}

/**
 * The answers to recent requests. A sender that got no answer in time sends the same bytes again; they get the same
 * answer and are not stored a second time. See docs/decisions/collector/duplicate-requests.md.
 */
export class RecentRequests<Answer extends object> {
  readonly #now: () => number;
  /** In the order of their arrival. */
  readonly #answers = new Map<string, { answer: Answer; atMs: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  answerTo(id: string): Answer | undefined {
    const known = this.#answers.get(id);
    return known !== undefined && this.#now() - known.atMs <= RECENT_REQUESTS_MS ? known.answer : undefined;
  }

  note(id: string, answer: Answer): void {
    this.#answers.delete(id);
    this.#answers.set(id, { answer, atMs: this.#now() });
    if (this.#answers.size <= MAX_RECENT_REQUESTS) return;
    const [oldest] = this.#answers.keys();
    this.#answers.delete(oldest!);
  }
}
