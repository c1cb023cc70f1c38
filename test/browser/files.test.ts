/** Files that are dropped on the page: profiles, and programs that name what arrived without names. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Collector, startCollector } from '../../collector/main.ts';
import { buildStripped, namelessProfile, type StrippedProgram } from '../support/stripped-program.ts';
import { CHROMIUM, launchChromium } from './chromium.ts';
import { encodeOtlp } from './encode-otlp.ts';
import { Pusher } from './push.ts';
import { profileFromText } from './synthetic-profile.ts';

/** Busy machines take their time. */
const until = (read: () => unknown) => expect.poll(read, { timeout: 40_000 });
const directory = mkdtempSync(join(tmpdir(), 'everyframe-drop-'));

if (CHROMIUM === undefined) console.log('skipped: files on the page, because Chromium is not installed');

describe.skipIf(CHROMIUM === undefined)('files on the page', () => {
  let browser: Browser;
  let page: Page;
  let collector: Collector;
  let program: StrippedProgram;

  beforeAll(async () => {
    program = buildStripped(directory);
    browser = await launchChromium();
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    collector = await startCollector({
      grpcListen: '127.0.0.1:0',
      httpListen: '127.0.0.1:0',
      pageListen: '127.0.0.1:0',
      maxMemoryBytes: 2 ** 26,
      logger: { info: () => {}, warn: () => {}, error: (...what: unknown[]) => expect.fail(String(what)) },
    });
    await page.goto(collector.urls.page);
  });
  afterAll(async () => {
    await browser?.close();
    await collector?.stop();
    rmSync(directory, { recursive: true });
  });

  /** As a browser does when files are let go over the page. */
  async function drop(name: string, bytes: Uint8Array): Promise<void> {
    await page.evaluate(`(() => {
      const bytes = Uint8Array.from(atob('${Buffer.from(bytes).toString('base64')}'), (c) => c.charCodeAt(0));
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([bytes], ${JSON.stringify(name)}));
      for (const type of ['dragover', 'drop'])
        dispatchEvent(new DragEvent(type, { dataTransfer, cancelable: true }));
    })()`);
  }
  const outcome = (name: string) => page.locator('.outcome', { hasText: name }).innerText();

  it('stores a dropped profile in each format, and shows it', async () => {
    await drop('checkout.folded', Buffer.from('shop;main;pay 30\nshop;main;list 10\n'));
    await until(() => outcome('checkout.folded')).toContain('40 samples imported');
    const otlp = encodeOtlp(profileFromText('api:9;main@n;serve@n 20', { endMs: Date.now(), spanMs: 2000 }));
    await drop('api.otlp', otlp);
    await until(() => outcome('api.otlp')).toContain('20 samples imported');
    const exported = await fetch(`${collector.urls.page}api/v1/export?format=pprof&range=15m`);
    await drop('again.pb.gz', Buffer.from(await exported.arrayBuffer()));
    await until(() => outcome('again.pb.gz')).toContain('60 samples imported');
    await page.locator('.outcome', { hasText: 'checkout.folded' }).getByText('Show').click();
    await until(() => page.url()).toContain('from=');
    await page.goto(`${collector.urls.page}#view=top&range=15m`);
    await page.getByRole('grid', { name: 'Functions' }).getByText('pay').waitFor();
  });

  it('says what a file is lacking', async () => {
    await drop('notes.txt', Buffer.from('milk, bread'));
    await until(() => outcome('notes.txt')).toContain('needs to end in a count');
    await drop(basename(program.strippedPath), readFileSync(program.strippedPath));
    await until(() => outcome('demo.stripped')).toContain(program.gnuBuildId);
    await page.locator('.outcome', { hasText: 'notes.txt' }).getByRole('button', { name: 'Close' }).click();
    await until(() => page.locator('.outcome', { hasText: 'notes.txt' }).count()).toBe(0);
  });

  it('names frames by a dropped debug file', async () => {
    const pusher = new Pusher(collector.urls.grpc);
    await pusher.push(encodeOtlp(namelessProfile(program)));
    pusher.close();
    await page.goto(`${collector.urls.page}#view=top&range=5m&where=process%3Ddemo`);
    const functions = page.getByRole('grid', { name: 'Functions' });
    await functions
      .getByText(/^demo\+0x/)
      .first()
      .waitFor();
    await drop(basename(program.debugPath), readFileSync(program.debugPath));
    await until(() => outcome('demo.debug')).toContain('4 of 4 nameless addresses named');
    await functions.getByText('inner').waitFor();
    if (process.env['SCREENSHOT'] !== undefined) await page.screenshot({ path: process.env['SCREENSHOT'] });
    expect(await functions.getByText(/^demo\+0x/).count()).toBe(0);
  });

  it('takes files from a dialog as well, which keys can open', async () => {
    const chooser = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Import' }).press('Enter');
    await (await chooser).setFiles({
      name: 'more.folded',
      mimeType: 'text/plain',
      buffer: Buffer.from('cron;tick 7\n'),
    });
    await until(() => outcome('more.folded')).toContain('7 samples imported');
  });
});
