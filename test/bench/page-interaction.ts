/**
 * What a person waits for: from a key pressed on the real page, served by a real collector, to the frame that shows
 * what it did, as the browser itself measures it (Event Timing; it rounds to 8 ms and says nothing below 16 ms).
 */
import type { Browser } from 'playwright-core';
import { startCollector } from '../../collector/main.ts';
import { encodeOtlp } from '../browser/encode-otlp.ts';
import { Pusher } from '../browser/push.ts';
import { profileFromText } from '../browser/synthetic-profile.ts';

export interface Interaction {
  /** Boxes that the page says it has drawn one by one. */
  boxes: number;
  /** From the key to the painted frame, milliseconds, in ascending order; 16 stands for 16 or less. */
  latencies: number[];
}

const SHOWN_LEAST_MS = 16;

/** Each round a neighbour of the chosen box is chosen, for which the page draws all boxes anew. */
export async function measureInteraction(
  browser: Browser,
  { rows, columns, rounds }: { rows: number; columns: number; rounds: number },
): Promise<Interaction> {
  const quiet = { info: () => {}, warn: () => {}, error: (what: unknown) => console.error(what) };
  const any = '127.0.0.1:0';
  const collector = await startCollector({
    ...{ grpcListen: any, httpListen: any, pageListen: any, maxMemoryBytes: 2 ** 28, logger: quiet },
  });
  const endMs = Date.now();
  const stack = (column: number): string =>
    Array.from(
      { length: rows - 2 },
      (_, row) => `function_${column}_${row}@${'nkpj'[(column + row) % 4]}`,
    ).join(';');
  const text = Array.from({ length: columns }, (_, column) => `app:1;${stack(column)} 2`).join('\n');
  const pusher = new Pusher(collector.urls.grpc);
  await pusher.push(encodeOtlp(profileFromText(text, { endMs, spanMs: 5000 })));
  pusher.close();
  // room for the rows, and for what is around the picture
  const page = await browser.newPage({
    viewport: { width: 2880, height: rows * 21 + 500 },
    reducedMotion: 'reduce',
  });
  await page.goto(`${collector.urls.page}#from=${endMs - 6000}&to=${endMs + 1000}`);
  const canvas = page.locator('.flame canvas[data-boxes]');
  await canvas.waitFor();
  await page.locator('.flame-scroller').focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
  await page.evaluate(`(() => {
    globalThis.keys = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries())
        if (entry.name === 'keydown') globalThis.keys.push(entry.duration);
    }).observe({ type: 'event', durationThreshold: ${SHOWN_LEAST_MS} });
  })()`);
  for (let round = 0; round < rounds; round++) {
    await page.keyboard.press(round % 2 === 0 ? 'ArrowRight' : 'ArrowLeft');
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))');
  }
  await page.waitForTimeout(200);
  const keys = await page.evaluate<number[]>('globalThis.keys');
  const boxes = Number(await canvas.getAttribute('data-boxes'));
  await page.close();
  await collector.stop();
  const fast = Array<number>(Math.max(0, rounds - keys.length)).fill(SHOWN_LEAST_MS);
  return { boxes, latencies: [...fast, ...keys].sort((a, b) => a - b) };
}
