/**
 * Processes whose memory or files did not answer, and users who have several of them: they are left alone for a second,
 * then for twice as long each time, so that nobody can make the agent wait again and again.
 */
import { statSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import type { Pid } from '../../common/base/brand.ts';

const FIRST_WAIT_MS = 1000;
const MAX_WAIT_MS = 600_000;
const MAX_KNOWN = 4096;
/** Of a user's processes; root's are whoever's. */
const MAX_A_USER = 2;

interface Unresponsive {
  times: number;
  until: number;
}

export interface PenaltiesOptions {
  proc?: string;
  now?: () => number;
}

export class Penalties {
  readonly #proc: string;
  readonly #now: () => number;
  readonly #processes = new LRUCache<Pid, Unresponsive>({ max: MAX_KNOWN });
  readonly #users = new LRUCache<number, Unresponsive>({ max: MAX_KNOWN });

  constructor({ proc = '/proc', now = () => performance.now() }: PenaltiesOptions = {}) {
    this.#proc = proc;
    this.#now = now;
  }

  /** Whether nothing is to be read of it for now. */
  isRefused(pid: Pid): boolean {
    // the usual case costs nothing
    if (this.#processes.size === 0) return false;
    const now = this.#now();
    return (
      (this.#processes.get(pid)?.until ?? 0) > now || (this.#users.size > 0 && this.#isUserRefused(pid, now))
    );
  }

  /** It did not answer. */
  note(pid: Pid): void {
    punish(this.#processes, pid, this.#now());
    const user = this.#userOf(pid);
    if (user !== undefined && user !== 0) punish(this.#users, user, this.#now());
  }

  #isUserRefused(pid: Pid, now: number): boolean {
    const user = this.#userOf(pid);
    const known = user === undefined ? undefined : this.#users.get(user);
    return known !== undefined && known.times >= MAX_A_USER && known.until > now;
  }

  /** Who owns it, by its effective user; undefined where it is gone. */
  #userOf(pid: Pid): number | undefined {
    return statSync(`${this.#proc}/${pid}`, { throwIfNoEntry: false })?.uid;
  }
}

function punish<Key extends number>(all: LRUCache<Key, Unresponsive>, key: Key, now: number): void {
  const times = (all.get(key)?.times ?? 0) + 1;
  all.set(key, { times, until: now + Math.min(FIRST_WAIT_MS * 2 ** (times - 1), MAX_WAIT_MS) });
}
