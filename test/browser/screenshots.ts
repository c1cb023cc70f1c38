/**
 * `make && node dist/test/browser/screenshots.js [URL] [DIRECTORY]`: pictures of each view of a running page, for
 * docs/page.md. Start `everyframe` and something that is worth looking at before.
 */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { TopAnswer } from '../../collector/api/types.ts';
import { launchChromium } from './chromium.ts';

const [url = 'http://127.0.0.1:11080/', directory = 'docs/images'] = process.argv.slice(2);
const browser = await launchChromium();
const page = await browser.newPage({ viewport: { width: 1280, height: 760 }, reducedMotion: 'reduce' });
mkdirSync(directory, { recursive: true });

const top = await fetch(new URL('/api/v1/top?range=5m&limit=200', url));
const { functions } = (await top.json()) as TopAnswer;
const busiest = functions.find(({ kind }) => kind !== 'kernel');
const withSource = functions.find(({ file }) => file.startsWith('/'));
if (busiest === undefined || withSource === undefined)
  throw new Error(
    `${url} has no samples of functions with a source file in the last 5 minutes: start something`,
  );
const now = Date.now();
const PARAMETERS: Record<string, Record<string, string>> = {
  flame: {},
  icicle: {},
  inverted: {},
  top: {},
  callers: { function: busiest.name },
  tree: {},
  source: { function: withSource.name, file: withSource.file },
  time: {},
  threads: { type: 'off_cpu/nanoseconds', by: 'thread.state' },
  diff: spans(now - 60_000, now, now - 120_000),
  health: {},
};
for (const [view, parameters] of Object.entries(PARAMETERS)) {
  await page.goto(`${url}#${new URLSearchParams({ range: '5m', view, ...parameters })}`);
  // A new fragment alone loads nothing anew.
  await page.reload();
  await page.locator('#view > *').first().waitFor();
  await page.waitForLoadState('networkidle').catch(() => {});
  const path = join(directory, `page-${view}.png`);
  await page.screenshot({ path });
  console.log(`${path}: ${Math.ceil(statSync(path).size / 1024)} KiB`);
}
await browser.close();

/** A stretch of time, and one that is as long and begins at `baseMs`. */
function spans(fromMs: number, toMs: number, baseMs: number): Record<string, string> {
  const baseTo = baseMs + toMs - fromMs;
  return { from: `${fromMs}`, to: `${toMs}`, base_from: `${baseMs}`, base_to: `${baseTo}` };
}
