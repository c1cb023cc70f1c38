/** Files that this product writes, opened by speedscope itself: the copy in its npm package, from disk. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readProfile, writeProfile } from '../../common/profile/formats.ts';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  existsSync,
);
if (CHROMIUM === undefined)
  console.log('skipped: speedscope is not opened, because Chromium is not installed');
const ARGUMENTS = [
  '--no-sandbox',
  '--use-angle=swiftshader',
  '--enable-unsafe-swiftshader',
  '--no-first-run',
];
const PACKAGE = dirname(createRequire(import.meta.url).resolve('speedscope/package.json'));

describe.skipIf(CHROMIUM === undefined)('speedscope', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'everyframe-speedscope-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(['a.speedscope.json', 'a.trace.json', 'a.pb.gz', 'a.folded'])('opens %s', async (name) => {
    const profile = readProfile(
      'x.folded',
      Buffer.from('app;main;first_function 30\napp;main;second_function;read_[k] 70\n'),
    );
    profile.period = 10_000_000n;
    const base64 = Buffer.from(writeProfile(name, profile)).toString('base64');
    const script = join(folder, `${name}.js`);
    writeFileSync(
      script,
      `speedscope.loadFileFromBase64(${JSON.stringify(name)}, ${JSON.stringify(base64)})`,
    );
    const browser = await chromium.launch({ executablePath: CHROMIUM!, args: ARGUMENTS });
    try {
      const page = await browser.newPage();
      const problems: string[] = [];
      page.on('pageerror', (error) => problems.push(String(error)));
      page.on('dialog', (dialog) => {
        problems.push(dialog.message());
        void dialog.dismiss();
      });
      await page.goto(`file://${PACKAGE}/dist/release/index.html#localProfilePath=${script}`);
      await page.getByText('Sandwich').click({ timeout: 30_000 });
      await page.getByText('second_function').first().waitFor({ timeout: 30_000 });
      expect(await page.getByText('first_function').count()).toBeGreaterThan(0);
      expect(problems).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
