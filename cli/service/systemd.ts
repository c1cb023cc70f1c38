/** What systemd is told of a service of Type=notify (sd_notify(3)); nothing where nobody listens. */
import { loadNative } from '../../agent/base/native.ts';

type Environment = Record<string, string | undefined>;
type Send = (path: string, text: string) => number;

const MICROS_A_MS = 1000;

export class Systemd {
  readonly #path: string | undefined;
  readonly #send: Send;
  #watchdog: NodeJS.Timeout | undefined;

  /** Takes its variables out of the environment: they are for this process alone. */
  constructor(env: Environment, send: Send = (path, text) => loadNative().sendDatagram(path, text)) {
    const { NOTIFY_SOCKET: path, WATCHDOG_USEC: micros, WATCHDOG_PID: pid } = env;
    for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
    this.#path = path || undefined;
    this.#send = send;
    const periodMs = Number(micros) / MICROS_A_MS;
    const isOurs = pid === undefined || Number(pid) === process.pid;
    // from this on: a loop that stands still does not say so
    if (this.#path !== undefined && isOurs && periodMs > 0)
      this.#watchdog = setInterval(() => this.#tell('WATCHDOG=1'), periodMs / 2).unref();
  }

  ready(status: string): void {
    this.#tell('READY=1', `STATUS=${status}`);
  }

  reloading(): void {
    this.#tell('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  stopping(): void {
    this.#tell('STOPPING=1', 'STATUS=sending the rest');
  }

  close(): void {
    clearInterval(this.#watchdog);
  }

  #tell(...lines: string[]): void {
    if (this.#path === undefined) return;
    try {
      this.#send(this.#path, lines.map((line) => line.replaceAll('\n', ' ')).join('\n'));
    } catch {
      // without the addon: systemd says that it was told nothing
    }
  }
}
