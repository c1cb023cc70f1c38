/** What a collector that `everyframe run` started knows of the agent beside it. */

import { Socket } from 'node:net';
import type { WatchedAgent } from '../../collector/status/status.ts';

/** Where cli/start/collector-process.ts puts the pipe. */
const LIFE_FD = 4;
/** A line has some 200. */
const MAX_LINE = 4096;

export class AgentLife {
  /** Undefined until it is first told. */
  state: WatchedAgent | undefined;
  /** `orphaned`: it was not told to. */
  readonly ended: Promise<'stopped' | 'orphaned'>;
  readonly #life = new Socket({ fd: LIFE_FD, readable: true, writable: false });
  #rest = '';
  #isStopping = false;
  #isNoted = false;

  constructor() {
    this.#life.setEncoding('utf8').on('data', (text: string) => this.#take(text));
    process.once('message', () => {
      this.#isNoted = true;
    });
    this.ended = new Promise((resolve) => {
      const end = (): void => resolve(this.#isStopping ? 'stopped' : 'orphaned');
      this.#life.once('end', end).once('error', end);
      // until then nobody but that agent knows of this collector
      process.once('disconnect', () => {
        if (!this.#isNoted) end();
      });
    });
  }

  close(): void {
    this.#life.destroy();
    if (process.connected) process.disconnect();
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop()!.slice(-MAX_LINE);
    for (const line of lines) {
      const told = JSON.parse(line) as Omit<WatchedAgent, 'state'> & {
        state: WatchedAgent['state'] | 'stopping';
      };
      if (told.state === 'stopping') this.#isStopping = true;
      else this.state = told as WatchedAgent;
    }
  }
}
