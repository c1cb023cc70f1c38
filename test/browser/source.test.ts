/** The source view, driven as a person does: from a box to the lines of its file. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SourceAnswer } from '../../collector/api/types.ts';
import { CHROMIUM } from './chromium.ts';
import { ShownPage } from './shown-page.ts';

if (CHROMIUM === undefined)
  console.log('skipped: the source view is not tested, because Chromium is not installed');

const folder = mkdtempSync(join(tmpdir(), 'everyframe-page-source-'));
const root = join(folder, 'project');
const file = join(root, 'app.py');
const secret = join(folder, 'secret.py');
const CODE = `def parse(text):
    return text.split()


def main():
    for line in open("x"):
        parse(line)
`;
const PADDING = Array.from({ length: 300 }, (_, i) => `# ${i}`).join('\n');

describe.skipIf(CHROMIUM === undefined)('the source view', () => {
  let shown: ShownPage;
  let page: Page;

  beforeAll(async () => {
    mkdirSync(root);
    writeFileSync(file, CODE);
    writeFileSync(join(root, 'long.py'), `${PADDING}\n${CODE}`);
    writeFileSync(secret, 'password = "1234"');
    symlinkSync(secret, join(root, 'link.py'));
    const before = Date.now() / 1000 - 3600;
    for (const path of [file, join(root, 'long.py')]) utimesSync(path, before, before);
    shown = await ShownPage.start({ source: [root] });
    const text = `
app:10;main@p:${file}:7;parse@p:${file}:2;split@n 30
app:10;main@p:${file}:6;read@n 10
app:10;main@p:${join(root, 'long.py')}:307 20
app:10;evil@p:/etc/shadow:1 5
app:10;evil@p:${secret}:1 5
app:10;evil@p:${join(root, 'link.py')}:1 5
`;
    await shown.push({ text, endMs: Date.now(), spanMs: 5000 });
  });
  afterAll(async () => {
    await shown.stop();
    rmSync(folder, { recursive: true });
  });

  const open = async (hash: string): Promise<void> => {
    page = await shown.open(`range=all&${hash}`);
  };
  const grid = () => page.getByRole('grid', { name: /^Source of / });
  const currentRow = async (): Promise<string> =>
    (await page.locator('.source tr.current').innerText()).replaceAll(/\s+/g, ' ').trim();
  const rows = async (): Promise<string[]> =>
    (await page.locator('.source tbody tr').allInnerTexts()).map((row) => row.replaceAll(/\s+/g, ' ').trim());

  it('is opened from a box by key, shows the lines with their samples, and a link keeps it', async () => {
    await open('where=frame=parse');
    await page.locator('.flame canvas[data-boxes]').waitFor();
    await page.locator('.flame-scroller').focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 's'])
      await page.keyboard.press(key);
    await grid().waitFor();
    expect(await rows()).toEqual([
      '1 def parse(text):',
      '100 % 2 return text.split()',
      '3',
      '4',
      '5 def main():',
      '6 for line in open("x"):',
      '100 % 7 parse(line)',
    ]);
    expect(await currentRow()).toBe('100 % 2 return text.split()');
    expect(page.url()).toContain(`view=source`);
    expect(await page.locator('.warning').count()).toBe(0);
    await grid().focus();
    await page.keyboard.press('n');
    await expect.poll(currentRow).toBe('100 % 7 parse(line)');
    await page.getByLabel('Search functions').fill('text');
    await expect.poll(() => page.locator('.search-note').innerText()).toBe('2 lines');
    const link = page.url();
    await page.goto('about:blank');
    await page.goto(link);
    await expect.poll(rows).toHaveLength(7);
    await grid().focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.function-name').innerText()).toBe('parse');
    await page.close();
  });

  it('begins at the line with the most samples, and is chosen from a list', async () => {
    await open('view=source');
    await page.locator('.functions tbody tr', { hasText: 'long.py' }).dblclick();
    await grid().waitFor();
    await expect.poll(currentRow).toBe('26.7 % 26.7 % 307 parse(line)');
    const [row, view] = await Promise.all([
      page.locator('.source tr.current').boundingBox(),
      page.locator('.source').boundingBox(),
    ]);
    expect(row!.y).toBeGreaterThan(view!.y);
    expect(row!.y + row!.height).toBeLessThanOrEqual(view!.y + view!.height + 1);
    await page.close();
  });

  it.each([
    ['/etc/shadow', /No text: \/etc\/shadow is not below /],
    [secret, /No text: .*secret\.py is not below /],
    [join(root, 'link.py'), /No text: .*link\.py leads to another place/],
  ])('shows nothing of %s, which a profile names', async (name, problem) => {
    await open(`view=source&file=${encodeURIComponent(name)}`);
    await grid().waitFor();
    expect(await page.locator('.hint').innerText()).toMatch(problem);
    expect(await rows()).toEqual(['6.7 % 6.7 % 1 evil']);
    await page.close();
  });

  it('is nothing for a file that no sample names, although it may be shown', async () => {
    const path = `api/v1/source?range=all&file=${encodeURIComponent(join(root, 'unsampled.py'))}`;
    writeFileSync(join(root, 'unsampled.py'), 'x = 1');
    const answer = (await (await fetch(shown.collector.urls.page + path)).json()) as SourceAnswer;
    expect(answer).toMatchObject({
      fileSamples: 0,
      counts: [],
      problem: expect.stringContaining('no sample'),
    });
    expect(answer.text).toBeUndefined();
  });

  it('says how to switch it on', async () => {
    const other = await ShownPage.start();
    await other.push({ text: `app:1;main@p:${file}:7 3`, endMs: Date.now(), spanMs: 100 });
    const url = `${other.collector.urls.page}api/v1/source?file=${encodeURIComponent(file)}`;
    const answer = await fetch(url);
    expect(await answer.json()).toMatchObject({
      fileSamples: 3,
      problem: expect.stringContaining('--source DIR'),
    });
    await other.stop();
  });
});
