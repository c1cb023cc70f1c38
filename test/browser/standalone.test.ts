/** The page of one profile, opened from disk as a person opens it. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { loadProfile, saveProfile } from '../../cli/profile-files.ts';

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
      writeFileSync(
        join(folder, 'in.folded'),
        'app;main;</script><b>parse 60\napp;main;write;vfs_write_[k] 40\n',
      );
      const file = join(folder, 'a & b.html');
      saveProfile(file, loadProfile(join(folder, 'in.folded')));
      const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
      const problems: string[] = [];
      page.on('console', (message) => problems.push(message.text()));
      page.on('pageerror', (error) => problems.push(String(error)));
      page.on('request', (request) => {
        if (!request.url().startsWith('file:')) problems.push(request.url());
      });
      await page.goto(`file://${encodeURI(file)}`);
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('a & b');
      await page.getByText('100 samples').waitFor();
      await page.locator('.flame canvas[data-boxes="6"]').waitFor();
      await page.getByLabel('Search functions').fill('<b>parse');
      await page.getByText('60.0 % in 1 box').waitFor();
      expect(problems).toEqual([]);
    } finally {
      await browser.close();
      rmSync(folder, { recursive: true });
    }
  });
});
