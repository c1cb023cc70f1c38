/** Waits in the page: their types, wall time, and threads that wait for work. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeOtlp } from '../../common/profile/otlp/otlp-encode.ts';
import { typedProfile } from '../support/typed-profile.ts';
import { CHROMIUM } from './chromium.ts';
import { Pusher } from './push.ts';
import { ShownPage } from './shown-page.ts';

if (CHROMIUM === undefined) console.log('skipped: waits are not shown, because Chromium is not installed');

/** 50 ms each. */
const CPU = 'busy:20;main@n;serve@n;parse@n 40';
const WAITS = `
server:10;main@n;serve@n;read@n;schedule@k 3000000000
server:10;runtime.mcall@g;runtime.findRunnable@g;runtime.futex@g;schedule@k 5000000000
`;

describe.skipIf(CHROMIUM === undefined)('waits in the page', () => {
  let shown: ShownPage;
  let endMs: number;

  beforeAll(async () => {
    shown = await ShownPage.start();
    endMs = Date.now();
    await shown.push({ text: CPU, endMs, spanMs: 4000 });
    const pusher = new Pusher(shown.collector.urls.grpc);
    const sampleType = { type: 'off_cpu', unit: 'nanoseconds' };
    const waits = typedProfile(WAITS, { sampleType, endMs: endMs - 1000 });
    await pusher.push(Buffer.from(encodeOtlp([waits], { scopeName: 'test', scopeVersion: '1' })));
    pusher.close();
  });
  afterAll(() => shown.stop());

  const open = async (hash: string): Promise<Page> => {
    const page = await shown.open(`from=${endMs - 60_000}&to=${endMs + 1000}&${hash}`);
    await page.getByLabel('Type of samples').waitFor();
    return page;
  };
  const rows = async (page: Page): Promise<string[]> =>
    (await page.locator('.tree tbody tr').allInnerTexts()).map((row) => row.replaceAll(/\s+/g, ' ').trim());

  it('has CPU, waiting, and both as one type', async () => {
    const page = await open('view=tree');
    const options = page.getByLabel('Type of samples').locator('option');
    expect(await options.allInnerTexts()).toEqual(['CPU: 40 samples', 'Waiting: 8 s', 'Wall: 10 s']);
    expect(await page.getByLabel('Idle threads').count()).toBe(0);
    await page.getByLabel('Type of samples').selectOption('wall_time/nanoseconds');
    await expect.poll(() => rows(page).then((all) => all.join('\n'))).toMatch(/8(\.0)? s .*server/);
    await page.close();
  });

  it('has no types to choose from where nothing is there', async () => {
    const page = await shown.open('from=1000&to=2000');
    // what is answered is listed, also before this looks
    await page.waitForFunction(() =>
      performance.getEntriesByType('resource').some(({ name }) => name.includes('/api/v1/types')),
    );
    await page.getByText('Nothing was sampled in that time').waitFor();
    expect(await page.getByLabel('Type of samples').count()).toBe(0);
    await page.close();
  });

  it('has lanes of threads by state; a drag zooms, a click shows the stack', async () => {
    const page = await open('view=threads');
    const lanes = page.locator('.lanes canvas');
    await page.getByLabel('States').getByText('running').first().waitFor();
    expect(await page.getByLabel('States').innerText()).toMatch(/running 2 s[\s\S]*other 5 s/);
    expect(await lanes.getAttribute('data-lanes')).toBe('2');
    const { x, y, width } = (await lanes.boundingBox())!;
    const gutter = 220;
    const at = (ms: number): number => x + gutter + ((ms - (endMs - 60_000)) / 61_000) * (width - gutter);
    // who runs comes first
    await page.mouse.click(at(endMs - 3000), y + 32);
    await page.getByRole('region', { name: 'Stack' }).getByText('1 frame of the kernel').waitFor();
    expect(await page.getByRole('region', { name: 'Stack' }).innerText()).toContain('Waiting for');
    await page.mouse.move(at(endMs - 20_000), y + 10);
    await page.mouse.down();
    await page.mouse.move(at(endMs), y + 10, { steps: 3 });
    await page.mouse.up();
    await expect.poll(() => page.url()).toContain('over_from=');
    const [, from, to] = /#from=(\d+)&to=(\d+)/.exec(page.url())!.map(Number);
    expect(Math.abs(to! - from! - 20_000)).toBeLessThan(1000);
    // the keyboard does the same
    await page.locator('.lanes').focus();
    await page.keyboard.press('-');
    await expect.poll(() => /#from=(\d+)/.exec(page.url())?.[1]).not.toBe(String(from));
    await page.close();
  });

  it('folds and hides threads that wait for work, and a link keeps it', async () => {
    const page = await open('view=top&type=wall_time/nanoseconds');
    const choice = page.getByLabel('Idle threads');
    await choice.selectOption('fold');
    await page.getByText('[idle: Go thread]').first().waitFor();
    expect(page.url()).toContain('transform=idle%3Dfold');
    await choice.selectOption('hide');
    await expect.poll(() => page.getByText('[idle: Go thread]').count()).toBe(0);
    expect(await page.getByText('schedule').count()).toBe(1);
    expect(await page.getByText('findRunnable').count()).toBe(0);
    await page.getByRole('button', { name: 'My code only' }).click();
    await expect.poll(() => page.url()).toContain('transform=idle%3Dhide+only%3Dmine');
    await page.close();
  });
});
