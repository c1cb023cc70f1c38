/** The page of one profile, opened from disk as a person opens it. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { loadProfiles, saveProfiles } from '../../cli/output/profile-files.ts';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  existsSync,
);
if (CHROMIUM === undefined)
  console.log('skipped: the .html file is not opened, because Chromium is not installed');

describe.skipIf(CHROMIUM === undefined)('a profile as .html', () => {
  it('opens from disk, asks nobody for anything, and finds functions', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'everyframe-html-'));
    const browser = await chromium.launch({
      executablePath: CHROMIUM!,
      args: ['--no-sandbox', '--disable-gpu'],
    });
    try {
      const callers = Array.from({ length: 6 }, (_, i) => `caller_${i}_${'of_a_long_name_'.repeat(4)}`);
      const deep = `app;${callers.join(';')};write;vfs_write_[k] 40`;
      writeFileSync(join(folder, 'in.folded'), `app;main;</script><b>parse 60\n${deep}\n`);
      const file = join(folder, 'a & b.html');
      await saveProfiles({ output: file }, await loadProfiles(join(folder, 'in.folded')));
      const page = await browser.newPage({ viewport: { width: 1000, height: 800 } });
      const problems: string[] = [];
      page.on('console', (message) => problems.push(message.text()));
      page.on('pageerror', (error) => problems.push(String(error)));
      page.on('request', (request) => {
        if (!request.url().startsWith('file:')) problems.push(request.url());
      });
      await page.goto(`file://${encodeURI(file)}`);
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('a & b');
      await page.getByText('100 samples').waitFor();
      await page.locator('.flame canvas[data-boxes="12"]').waitFor();
      await page.getByLabel('Search functions').fill('<b>parse');
      await page.getByText('60.0 % in 1 box').waitFor();
      // what fits of each name on the way to the zoomed box, none of them hidden as a whole
      await page.getByLabel('Search functions').fill('caller_5');
      await page.getByLabel('Search functions').press('Enter');
      await page.getByRole('application', { name: 'Flame graph' }).press('Enter');
      const steps = page.locator('.breadcrumb button');
      await expect.poll(() => steps.last().innerText()).toMatch(/^caller_5/);
      for (const step of await steps.all()) {
        const [own, item] = [await step.boundingBox(), await step.locator('..').boundingBox()];
        expect(own!.x + own!.width, await step.innerText()).toBeLessThanOrEqual(item!.x + item!.width + 1);
        expect(own!.width).toBeGreaterThan(20);
      }
      for (let i = 0; i < 7; i++)
        await page.getByRole('application', { name: 'Flame graph' }).press('Backspace');
      await expect.poll(() => steps.count()).toBe(1);
      expect(problems).toEqual([]);
    } finally {
      await browser.close();
      rmSync(folder, { recursive: true });
    }
  });
});

/** As GitHub serves files, but for its `sandbox`, which would keep this test out too. */
const STRICT = { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" };

describe.skipIf(CHROMIUM === undefined)('a profile as .svg', () => {
  it('zooms and finds functions without a script, under a strict policy', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'everyframe-svg-'));
    const browser = await chromium.launch({
      executablePath: CHROMIUM!,
      args: ['--no-sandbox', '--disable-gpu'],
    });
    try {
      const folded = 'app;main;<b>parse 60\napp;main;write;vfs_write_[k] 39\nsh;main 1\n';
      writeFileSync(join(folder, 'in.folded'), folded);
      await saveProfiles(
        { output: join(folder, 'a & b.svg') },
        await loadProfiles(join(folder, 'in.folded')),
      );
      const page = await browser.newPage({ viewport: { width: 1300, height: 800 } });
      const problems: string[] = [];
      page.on('console', (message) => problems.push(message.text()));
      await page.route('**', (route) =>
        route.fulfill({ path: join(folder, 'a & b.svg'), contentType: 'image/svg+xml', headers: STRICT }),
      );
      await page.goto('http://profile.invalid/a.svg');
      const widthOf = async (name: string): Promise<number> => {
        const box = page.locator('.box', { has: page.locator('text', { hasText: name }) }).locator('rect');
        return Math.round(((await box.first().boundingBox())?.width ?? 0) / 13);
      };
      expect(await widthOf('all')).toBe(100);
      expect(await widthOf('vfs_write')).toBe(39);
      expect(await page.title()).toBe('a & b');
      await page.locator('#boxes text', { hasText: 'vfs_write' }).click({ force: true });
      await expect.poll(() => widthOf('vfs_write')).toBe(100);
      expect(await widthOf('<b>parse')).toBe(0);
      expect(await widthOf('app')).toBe(100);
      await page.getByText('Whole picture').click();
      await expect.poll(() => widthOf('vfs_write')).toBe(39);
      await page.locator('a:not(:has(.box)) tspan', { hasText: '<b>parse' }).click();
      await page.getByText('<b>parse: 60.0 % of the samples, in 1 box').waitFor();
      const fills = (await page.evaluate(
        "[...document.querySelectorAll('#boxes rect')].map((box) => getComputedStyle(box).fill)",
      )) as string[];
      expect(fills.filter((fill) => fill === 'rgb(245, 200, 66)')).toHaveLength(1);
      expect(new Set(fills).size).toBe(2);
      expect(problems).toEqual([]);
    } finally {
      await browser.close();
      rmSync(folder, { recursive: true });
    }
  });
});
