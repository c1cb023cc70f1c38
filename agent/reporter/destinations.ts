/** Where profiles go: each destination has a queue, a connection and retries of its own, so that none waits for another. */
import { isDeepStrictEqual } from 'node:util';
import type { Profile } from '../../common/profile/model/profile.ts';
import type { SenderLog } from '../../otlp-client/link-log.ts';
import type { SenderOptions } from '../../otlp-client/request-sender.ts';
import { Reporter } from './reporter.ts';

/** One that is given up has that long for what still waits. */
const FAREWELL_MS = 30_000;

interface Destination {
  options: SenderOptions;
  reporter: Reporter;
}

export class Destinations {
  readonly #log: SenderLog;
  #current: Destination[];
  /** Given up, and sending their rest. */
  readonly #leaving = new Set<Reporter>();
  /** What those counted that are gone. */
  readonly #gone: Record<string, number> = {};

  constructor(options: readonly SenderOptions[], log: SenderLog) {
    this.#log = log;
    this.#current = options.map((each) => this.#open(each));
  }

  /** Resolves when it waits to be sent everywhere. */
  push(profile: Profile): void | Promise<void> {
    const waiting = this.#current.flatMap(({ reporter }) => reporter.push(profile) ?? []);
    if (waiting.length > 0) return Promise.all(waiting).then(() => {});
  }

  /** Those whose options stay keep their queues; what waits in others is still sent to where it was meant for. */
  replace(options: readonly SenderOptions[]): void {
    const before = this.#current;
    this.#current = options.map((wanted) => {
      const same = before.findIndex((each) => isSame(each.options, wanted));
      return same < 0 ? this.#open(wanted) : before.splice(same, 1)[0]!;
    });
    for (const { reporter } of before) void this.#leave(reporter);
  }

  async flush(timeoutMs: number): Promise<void> {
    await Promise.all([...this.#all()].map((each) => each.flush(timeoutMs)));
  }

  close(): void {
    for (const each of this.#all()) each.close();
  }

  /** Sums over all: a sample that two receivers are sent counts twice. */
  stats(): Record<string, number> {
    const sums = { ...this.#gone };
    for (const reporter of this.#all()) addTo(sums, reporter.stats());
    return sums;
  }

  #open(options: SenderOptions): Destination {
    return { options, reporter: new Reporter(options, this.#log) };
  }

  async #leave(reporter: Reporter): Promise<void> {
    this.#leaving.add(reporter);
    await reporter.flush(FAREWELL_MS);
    if (!this.#leaving.delete(reporter)) return;
    reporter.close();
    addTo(this.#gone, reporter.stats());
  }

  *#all(): Generator<Reporter> {
    for (const { reporter } of this.#current) yield reporter;
    yield* this.#leaving;
  }
}

/** Notes are for a person. */
const isSame = (a: SenderOptions, b: SenderOptions): boolean =>
  isDeepStrictEqual({ ...a, notes: [] }, { ...b, notes: [] });

function addTo(sums: Record<string, number>, stats: Record<string, number>): void {
  for (const [name, value] of Object.entries(stats)) sums[name] = (sums[name] ?? 0) + value;
}
