/** The flame graph of a recording as the page shows it. */
import { join } from 'node:path';
import { saveProfiles } from '../../../cli/output/profile-files.ts';
import type { ProfileSet } from '../../../common/profile/model/profile.ts';
import { launchChromium } from '../../browser/chromium.ts';
import { scratchFolder } from '../../support/fixtures.ts';

/** `from`: a function's name. */
export async function takePicture(
  profiles: ProfileSet,
  title: string,
  from: string,
  path: string,
): Promise<void> {
  const file = join(scratchFolder, `${title.replaceAll('/', ' ')}.html`);
  await saveProfiles({ output: file, force: true }, profiles);
  const browser = await launchChromium();
  try {
    const page = await browser.newPage({ viewport: { width: 1100, height: 720 }, reducedMotion: 'reduce' });
    await page.goto(`file://${encodeURI(file)}`);
    await page.locator('.flame canvas[data-boxes]').waitFor();
    const search = page.getByLabel('Search functions');
    await search.fill(from);
    await page.getByText(/% in \d+ box/).waitFor();
    await search.press('Enter');
    await page.getByRole('application', { name: 'Flame graph' }).press('Enter');
    await page.locator('.breadcrumb button').nth(1).waitFor();
    await search.fill('');
    await page.screenshot({ path });
  } finally {
    await browser.close();
  }
}
