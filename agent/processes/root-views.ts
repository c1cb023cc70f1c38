/**
 * Which processes see the same files: those whose root is the same directory of the same mount. Who has a mount namespace
 * of their own can put whatever they like at any path, so what is found there counts for that view alone.
 */
import { close, constants, openSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import type { Pid } from '../../common/base/brand.ts';
import { loadNative } from '../base/native.ts';
import type { ProcessIdentity } from '../records/records.ts';
import { parseStat, readSmallFile } from './proc-files.ts';

/** The agent's own; also of a process that ended before it was looked at, since nobody can put anything there. */
export const OWN_VIEW = 0;

interface View {
  number: number;
  identity: string;
  /** Descriptor of its root (O_PATH): paths are looked up there, and its mount keeps its number while it is open. */
  fd: number;
  usedAt: number;
  users: number;
}

interface Seen {
  startTicks: bigint;
  view: number;
}

export interface RootViewsOptions {
  proc?: string;
  max?: number;
  idleMs?: number;
  now?: () => number;
}

/** From open(2) of Linux; Node has no name for it. */
const O_PATH = 0o10000000;
const TICK_NS = 10_000_000n;
const MAX_PROCESSES = 8192;
/** A mount that somebody wants to take away is busy as long as its root is open. */
const IDLE_MS = 60_000;
const MAX_VIEWS = 128;

export class RootViews {
  readonly #proc: string;
  readonly #idleMs: number;
  readonly #now: () => number;
  readonly #seen = new LRUCache<Pid, Seen>({ max: MAX_PROCESSES });
  readonly #byIdentity = new Map<string, View>();
  readonly #byNumber: LRUCache<number, View>;
  #own: string | undefined;
  #last = OWN_VIEW;
  #sweeper: NodeJS.Timeout | undefined;

  constructor({
    proc = '/proc',
    max = MAX_VIEWS,
    idleMs = IDLE_MS,
    now = () => performance.now(),
  }: RootViewsOptions = {}) {
    this.#proc = proc;
    this.#idleMs = idleMs;
    this.#now = now;
    this.#byNumber = new LRUCache({ max, dispose: (view) => this.#drop(view) });
  }

  /** How many there are beside the agent's own. */
  get size(): number {
    return this.#byNumber.size;
  }

  of({ pid, startBoottimeNs }: Pick<ProcessIdentity, 'pid' | 'startBoottimeNs'>): number {
    const startTicks = startBoottimeNs / TICK_NS;
    const seen = this.#seen.get(pid);
    if (seen?.startTicks !== startTicks) return this.#look(pid, startTicks);
    if (seen.view === OWN_VIEW) return OWN_VIEW;
    const view = this.#byNumber.get(seen.view);
    if (!view) return this.#look(pid, startTicks);
    view.usedAt = this.#now();
    return view.number;
  }

  /** Notes the view of a process that may be gone when somebody asks. */
  note(pid: Pid): void {
    if (this.#seen.has(pid)) return;
    const stat = parseStat(readSmallFile(`${this.#proc}/${pid}/stat`) ?? '');
    if (stat) this.#look(pid, stat.startTicks);
  }

  /** It runs another program now, maybe elsewhere. */
  forget(pid: Pid): void {
    this.#seen.delete(pid);
  }

  /** Runs `use` with a descriptor of the view's root that stays open meanwhile; undefined where it can't be had any more. */
  async use<T>(number: number, use: (root: number | undefined) => Promise<T>): Promise<T> {
    const view = this.#byNumber.get(number);
    if (!view) return use(undefined);
    view.users++;
    try {
      return await use(view.fd);
    } finally {
      view.users--;
      view.usedAt = this.#now();
      if (this.#byNumber.peek(number) !== view) this.#close(view);
    }
  }

  closeAll(): void {
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
    this.#byNumber.clear();
    this.#seen.clear();
  }

  #look(pid: Pid, startTicks: bigint): number {
    const view = this.#find(`${this.#proc}/${pid}/root`);
    // else the number may be of another process by now
    if (view !== OWN_VIEW && this.#startOf(pid) !== startTicks) return OWN_VIEW;
    this.#seen.set(pid, { startTicks, view });
    return view;
  }

  #startOf(pid: Pid): bigint | undefined {
    return parseStat(readSmallFile(`${this.#proc}/${pid}/stat`) ?? '')?.startTicks;
  }

  #find(path: string): number {
    const native = loadNative();
    this.#own ??= native.rootIdentity('/');
    // the process's own, not the link to it
    const identity = native.rootIdentity(`${path}/`);
    if (identity === undefined || identity === this.#own) return OWN_VIEW;
    const known = this.#byIdentity.get(identity);
    if (known && this.#byNumber.get(known.number)) return known.number;
    return this.#open(path, identity);
  }

  #open(path: string, identity: string): number {
    let fd: number;
    try {
      fd = openSync(path, O_PATH | constants.O_DIRECTORY);
    } catch {
      return OWN_VIEW;
    }
    const view = { number: ++this.#last, identity, fd, usedAt: this.#now(), users: 0 };
    // it may have changed its root meanwhile
    if (loadNative().rootIdentity(`/proc/self/fd/${fd}/`) !== identity) {
      this.#close(view);
      return OWN_VIEW;
    }
    this.#byIdentity.set(identity, view);
    this.#byNumber.set(view.number, view);
    this.#sweeper ??= setInterval(() => this.#sweep(), this.#idleMs / 2).unref();
    return view.number;
  }

  #sweep(): void {
    const oldest = this.#now() - this.#idleMs;
    for (const [number, { users, usedAt }] of [...this.#byNumber.entries()])
      if (users === 0 && usedAt <= oldest) this.#byNumber.delete(number);
    if (this.#byNumber.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  #drop(view: View): void {
    if (this.#byIdentity.get(view.identity) === view) this.#byIdentity.delete(view.identity);
    this.#close(view);
  }

  #close({ fd, users }: View): void {
    if (users === 0) close(fd, () => {});
  }
}
