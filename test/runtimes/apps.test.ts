/**
 * Web apps of several languages under load, recorded as a person does. `npm run test:apps` also renews the table of
 * docs/interpreters/apps.md and the pictures.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, describe, expect, it } from 'vitest';
import { loadProfiles } from '../../cli/output/profile-files.ts';
import { mainOf } from '../../common/profile/model/profile.ts';
import { missingRights } from '../support/fixtures.ts';
import { APPS } from './apps/apps.ts';
import { describeShown, recordApp, type Shown } from './apps/observe.ts';
import { takePicture } from './apps/picture.ts';
import { writeTable } from './apps/table.ts';
import { isWholeMatrix } from './package-roots.ts';

const SECONDS = 15;
const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'build/apps');
const isRenewed = process.env['APPS'] === 'renew';
const canRun = missingRights === '' && isWholeMatrix;
if (!isWholeMatrix) console.log('skipped: web apps, only `npm run test:apps` and `test:runtimes` fetch them');

describe.skipIf(!canRun)('an app under load', () => {
  const shown = new Map<string, Shown>();

  afterAll(() => {
    if (isRenewed) writeTable(join(ROOT, 'docs/interpreters/apps.md'), APPS, shown);
  });

  it.for(APPS)(
    '$title: its functions, their lines and their callers',
    { timeout: 300_000 },
    async (app, { skip }) => {
      const commands = app.prepare();
      if (commands === undefined) return skip();
      mkdirSync(FOLDER, { recursive: true });
      const output = join(FOLDER, `${app.name}.otlp`);
      await recordApp(commands, SECONDS, output);
      const profiles = await loadProfiles(output);
      const found = describeShown(app, mainOf(profiles));
      console.log(app.name, found);
      shown.set(app.name, found);
      expect([...found.seen.keys()].sort()).toEqual(app.own.map(([name]) => name).sort());
      expect(found.whole / found.samples).toBeGreaterThan(app.whole ?? 0.98);
      expect(found.own / found.samples).toBeGreaterThan(0.1);
      expect(found.elsewhere / found.own).toBeLessThan(0.02);
      expect(found.rooted / found.leaf).toBeGreaterThan(0.9);
      if (app.attribute) expect(found.attributed / found.leaf).toBeGreaterThan(0.95);
      const picture = join(ROOT, 'docs/images', `app-${app.name}.png`);
      if (isRenewed && app.pictureFrom) await takePicture(profiles, app.title, app.pictureFrom, picture);
    },
  );
});
