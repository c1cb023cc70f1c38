/** What colours say and whose code is shown, chosen as a person does. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM } from './chromium.ts';
import { ShownPage } from './shown-page.ts';

if (CHROMIUM === undefined) console.log('skipped: colours are not tested, because Chromium is not installed');

const MODULES = '/srv/app/node_modules';
const stacks = (slow: number): string => `
web:10;start@j:/srv/app/main.js:1;route@j:${MODULES}/router/index.js:3;query@j:${MODULES}/pg/client.js:9 ${slow}
web:10;start@j:/srv/app/main.js:1;render@j:/srv/app/view.js:5;write@n 20
web:10;start@j:/srv/app/main.js:1;emit@j:node:events:7 10
`;

/** The colour of a box's left part, which holds no text. */
const colourAt = (row: number, share: number): string => `(() => {
  const canvas = document.querySelector('.flame canvas');
  const [x, y] = [Math.round(canvas.width * ${share}) + 3, ${row} * 21 + 3];
  return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].join();
})()`;

describe.skipIf(CHROMIUM === undefined)('colours and presets', () => {
  let shown: ShownPage;
  let endMs: number;

  beforeAll(async () => {
    shown = await ShownPage.start();
    endMs = Date.now();
    await shown.push(
      { text: stacks(10), endMs: endMs - 5000, spanMs: 4000 },
      { text: stacks(70), endMs, spanMs: 4000 },
    );
  });
  afterAll(() => shown.stop());

  const open = (hash = ''): Promise<Page> => shown.open(`from=${endMs - 5000}&to=${endMs}&${hash}`);
  const legend = async (page: Page): Promise<string> =>
    (await page.locator('.legend').innerText()).replaceAll(/\s+/g, ' ').trim();
  const rows = async (page: Page): Promise<string[]> =>
    (await page.locator('.tree tbody tr td:nth-child(3)').allInnerTexts()).map((row) => row.trim());

  it('tell libraries apart, with a legend, and a link keeps it', async () => {
    const page = await open();
    await page.locator('.flame canvas[data-boxes]').waitFor();
    await expect.poll(() => legend(page)).toBe('JavaScript 80.0 % native 20.0 %');
    // emit, render and route are on the fourth row; the first and the last are of one kind
    const colours = (): Promise<string[]> =>
      Promise.all([0, 0.3].map((share) => page.evaluate<string>(colourAt(3, share))));
    const before = await colours();
    await page.getByLabel('Colours by').selectOption('library');
    await expect.poll(() => legend(page)).toBe('pg 70.0 % libc.so.6 20.0 % node 10.0 %');
    expect(page.url()).toContain('colour=library');
    await expect.poll(colours).not.toEqual(before);
    const byLibrary = await colours();
    expect(byLibrary[0]).not.toBe(byLibrary[1]);
    const link = page.url();
    await page.goto('about:blank');
    await page.goto(link);
    await expect.poll(() => legend(page)).toContain('pg 70.0 %');
    expect(await page.getByLabel('Colours by').inputValue()).toBe('library');
    await page.getByLabel('Colours by').focus();
    await page.keyboard.press('ArrowUp');
    await expect.poll(() => page.url()).not.toContain('colour=');
    await page.close();
  });

  it('do not make one box of a kind of many that are too small to draw', async () => {
    const many = Array.from({ length: 4000 }, (_, i) => `app:1;start@n;f${i}@k 1`).join('\n');
    await shown.push({ text: many, endMs: endMs - 60_000, spanMs: 4000 });
    const page = await shown.open(`from=${endMs - 70_000}&to=${endMs - 59_000}`);
    await page.locator('.flame canvas[data-boxes]').waitFor();
    await expect.poll(() => legend(page)).toBe('kernel 100 %');
    const [red, green, blue] = (await page.evaluate<string>(colourAt(3, 0.7))).split(',').map(Number);
    expect(Math.max(red!, green!, blue!) - Math.min(red!, green!, blue!)).toBeLessThan(12);
    await page.close();
  });

  it('say what grew against the time before, in boxes as wide as now', async () => {
    const page = await open('colour=difference');
    await expect.poll(() => legend(page)).toBe('grew shrank');
    await expect.poll(() => page.locator('.summary').innerText()).toContain('100 samples');
    expect(await page.locator('.legend-row').innerText()).toMatch(/compared with .*\d:\d\d/);
    const channels = async (share: number): Promise<number[]> =>
      (await page.evaluate<string>(colourAt(3, share))).split(',').map(Number);
    // emit went from a quarter to a tenth; route from a quarter to seven tenths
    const [emit, route] = [await channels(0.02), await channels(0.6)];
    expect(emit[2]!).toBeGreaterThan(emit[0]!);
    expect(route[0]!).toBeGreaterThan(route[2]!);
    await page.getByRole('tab', { name: 'Inverted', exact: true }).click();
    await expect.poll(() => legend(page)).toContain('JavaScript');
    await page.getByRole('tab', { name: 'Diff', exact: true }).click();
    await expect.poll(() => legend(page)).toBe('grew shrank');
    await page.getByLabel('Colours by').selectOption('library');
    await expect.poll(() => legend(page)).toMatch(/^pg \d/);
    await page.close();
  });

  it('leave my code of one runtime, or of all', async () => {
    const page = await open('view=top');
    await expect.poll(() => rows(page)).toEqual(['query', 'write', 'emit', 'start', 'route', 'render']);
    await page.getByRole('button', { name: 'My code only' }).click();
    await expect.poll(() => page.url()).toContain('transform=only%3Dmine');
    await page.getByLabel('My code only, of').selectOption('node');
    await expect.poll(() => rows(page)).toEqual(['start', 'write', 'render']);
    expect(page.url()).toContain('transform=only%3Dnode');
    await page.getByLabel('My code only, of').selectOption('mine');
    await expect.poll(() => rows(page)).toEqual(['start', 'render']);
    await page.getByRole('button', { name: 'My code only' }).click();
    await expect.poll(async () => (await rows(page)).length).toBe(6);
    await page.close();
  });
});
