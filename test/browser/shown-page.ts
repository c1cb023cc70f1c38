/** A collector with profiles in it, its page in Chromium, and what the page complained of. */
import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
import { type Collector, startCollector } from '../../collector/main.ts';
import { launchChromium } from './chromium.ts';
import { encodeOtlp } from './encode-otlp.ts';
import { Pusher } from './push.ts';
import { profileFromText } from './synthetic-profile.ts';

const TIMEOUT_MS = 60_000;

export class ShownPage {
  readonly collector: Collector;
  /** From the first page on. */
  #browser: Browser | undefined;
  readonly #problems: string[] = [];

  private constructor(collector: Collector) {
    this.collector = collector;
  }

  static async start(options: { source?: string[] } = {}): Promise<ShownPage> {
    const collector = await startCollector({
      grpcListen: '127.0.0.1:0',
      httpListen: '127.0.0.1:0',
      pageListen: '127.0.0.1:0',
      maxMemoryBytes: 2 ** 26,
      logger: { info: () => {}, warn: () => {}, error: (what: unknown) => expect.fail(String(what)) },
      ...options,
    });
    return new ShownPage(collector);
  }

  /** Profiles as text, in {@link profileFromText}'s form. */
  async push(...profiles: readonly { text: string; endMs: number; spanMs: number }[]): Promise<void> {
    const pusher = new Pusher(this.collector.urls.grpc);
    for (const { text, ...times } of profiles) await pusher.push(encodeOtlp(profileFromText(text, times)));
    pusher.close();
  }

  async open(hash: string): Promise<Page> {
    this.#browser ??= await launchChromium();
    const page = await this.#browser.newPage({
      viewport: { width: 1280, height: 800 },
      reducedMotion: 'reduce',
    });
    page.setDefaultTimeout(TIMEOUT_MS);
    page.on('pageerror', (error) => this.#problems.push(String(error)));
    page.on('console', (message) => message.type() === 'error' && this.#problems.push(message.text()));
    await page.goto(`${this.collector.urls.page}#${hash}`);
    return page;
  }

  /** Fails where the page complained. */
  async stop(): Promise<void> {
    await this.#browser?.close();
    await this.collector.stop();
    expect(this.#problems).toEqual([]);
  }
}
