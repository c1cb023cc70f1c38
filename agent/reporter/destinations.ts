/** Where profiles go: each destination has a queue, a connection and retries of its own, so that none waits for another. */
import type { Profile } from '../../common/profile/model/profile.ts';
import type { SenderLog } from '../../otlp-client/link-log.ts';
import type { SenderOptions } from '../../otlp-client/request-sender.ts';
import { Reporter } from './reporter.ts';

export class Destinations {
  readonly #reporters: Reporter[];

  constructor(options: readonly SenderOptions[], log: SenderLog) {
    this.#reporters = options.map((each) => new Reporter(each, log));
  }

  /** Resolves when it waits to be sent everywhere. */
  push(profile: Profile): void | Promise<void> {
    const waiting = this.#reporters.map((each) => each.push(profile)).filter((each) => each !== undefined);
    if (waiting.length > 0) return Promise.all(waiting).then(() => {});
  }

  async flush(timeoutMs: number): Promise<void> {
    await Promise.all(this.#reporters.map((each) => each.flush(timeoutMs)));
  }

  close(): void {
    for (const each of this.#reporters) each.close();
  }

  /** Sums over all: a sample that two receivers are sent counts twice. */
  stats(): Record<string, number> {
    const sums: Record<string, number> = {};
    for (const reporter of this.#reporters)
      for (const [name, value] of Object.entries(reporter.stats())) sums[name] = (sums[name] ?? 0) + value;
    return sums;
  }
}
