/**
 * `make && node dist/test/browser/screenshots.js [URL] [DIRECTORY]`: pictures of each view of a running page, for
 * docs/images. Start `everyframe` and something that is worth looking at before.
 */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { launchChromium } from './chromium.ts';

const [url = 'http://127.0.0.1:11080/', directory = 'docs/images'] = process.argv.slice(2);
const VIEWS = ['icicle', 'inverted', 'top', 'callers', 'tree', 'source', 'time', 'diff', 'health'];

const browser = await launchChromium();
const page = await browser.newPage({ viewport: { width: 1100, height: 640 }, reducedMotion: 'reduce' });
mkdirSync(directory, { recursive: true });
let callee = '';
for (const view of VIEWS) {
  const address = `${url}#range=5m&view=${view}${view === 'callers' ? `&function=${encodeURIComponent(callee)}` : ''}`;
  await page.goto(address);
  // A new fragment alone loads nothing anew.
  await page.reload();
  await page.locator('#view > *').first().waitFor();
  await page.waitForLoadState('networkidle').catch(() => {});
  if (view === 'top')
    callee = (await page.locator('.functions tbody tr td:nth-child(3)').first().innerText()).trim();
  const path = join(directory, `${view}.png`);
  await page.screenshot({ path });
  console.log(`${path}: ${Math.ceil(statSync(path).size / 1024)} KiB`);
}
await browser.close();
