/**
 * Processes whose memory or files did not answer, and users who have several of them: they are left alone for a second,
 * then for twice as long each time, so that nobody can make the agent wait again and again.
 */
import { statSync } from 'node:fs';
import type { Pid } from '../../common/base/brand.ts';
import { BackOff } from '../base/back-off.ts';

const GROWTH = { firstMs: 1000, factor: 2, maxMs: 600_000 };
const MAX_KNOWN = 4096;
/** Processes of one user that may fail before all of that user's are refused. Not for root, whose processes are whoever's. */
const MAX_A_USER = 2;

export interface PenaltiesOptions {
  proc?: string;
  now?: () => number;
}

export class Penalties {
  readonly #proc: string;
  readonly #processes: BackOff<Pid>;
  readonly #users: BackOff<number>;

  constructor({ proc = '/proc', now }: PenaltiesOptions = {}) {
    this.#proc = proc;
    this.#processes = new BackOff(MAX_KNOWN, now);
    this.#users = new BackOff(MAX_KNOWN, now);
  }

  /** True while nothing is to be read of the process. */
  isRefused(pid: Pid): boolean {
    return this.#processes.isLeftAlone(pid) || (this.#users.size > 0 && this.#isUserRefused(pid));
  }

  /** It did not answer. */
  note(pid: Pid): void {
    this.#processes.note(pid, GROWTH);
    const user = this.#userOf(pid);
    if (user !== undefined && user !== 0) this.#users.note(user, GROWTH);
  }

  #isUserRefused(pid: Pid): boolean {
    const user = this.#userOf(pid);
    return user !== undefined && this.#users.isLeftAlone(user, MAX_A_USER);
  }

  /** Who owns it, by its effective user; undefined where it is gone. */
  #userOf(pid: Pid): number | undefined {
    return statSync(`${this.#proc}/${pid}`, { throwIfNoEntry: false })?.uid;
  }
}
