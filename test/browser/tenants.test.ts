/** The page of a collector with tenants: whoever opens it is known by the token alone. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Collector, startCollector } from '../../collector/main.ts';
import { launchChromium } from './chromium.ts';
import { encodeOtlp } from './encode-otlp.ts';
import { Pusher } from './push.ts';
import { profileFromText } from './synthetic-profile.ts';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-tenants-'));
const tokenOf = (name: string): string => `${name}-token-0123456789`;
let browser: Browser;
let collector: Collector;

beforeAll(async () => {
  const tenant = ['shop', 'bank'].map((name) => ({ name, tokenFile: join(folder, name) }));
  for (const { name, tokenFile } of tenant) writeFileSync(tokenFile, tokenOf(name));
  collector = await startCollector({
    grpcListen: '127.0.0.1:0',
    httpListen: '127.0.0.1:0',
    pageListen: '127.0.0.1:0',
    maxMemoryBytes: 2 ** 26,
    access: { tenant },
    logger: { info: () => {}, warn: () => {}, error: (what: unknown) => expect.fail(String(what)) },
  });
  const pusher = new Pusher(collector.urls.grpc, { authorization: `Bearer ${tokenOf('shop')}` });
  await pusher.push(
    encodeOtlp(profileFromText('till:1;main@n;pay@n 6', { endMs: Date.now(), spanMs: 5000 })),
  );
  pusher.close();
  browser = await launchChromium();
});
afterAll(async () => {
  await browser.close();
  await collector.stop();
  rmSync(folder, { recursive: true });
});

async function withPage(
  address: string,
  look: (page: Page) => Promise<void>,
  password?: string,
): Promise<void> {
  const context = await browser.newContext(
    password === undefined ? {} : { httpCredentials: { username: 'anyone', password } },
  );
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(address);
  await look(page);
  await context.close();
}

it('shows a tenant its samples, also where the token is in the address', async () => {
  const address = collector.urls.page.replace('://', `://anyone:${tokenOf('shop')}@`);
  await withPage(`${address}#view=top&range=15m`, async (page) => {
    await page.getByText('6 samples · 2 functions').waitFor();
    await page.getByRole('tab', { name: 'Health' }).click();
    await page.getByText('What the collector has of tenant shop').waitFor();
  });
}, 90_000);

it('shows another tenant nothing of it', async () => {
  const look = async (page: Page): Promise<void> => {
    await page.getByText('What the collector has of tenant bank').waitFor();
    await page.getByText('None has connected').waitFor();
  };
  await withPage(`${collector.urls.page}#view=health`, look, tokenOf('bank'));
}, 90_000);
