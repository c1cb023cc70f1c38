/**
 * Each format opened by what people use: speedscope itself, and the flame-graph tools and the Firefox Profiler's own
 * importer where they are installed (scripts/test-viewers.sh installs what registries have of them).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Ajv } from 'ajv';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadProfiles, saveProfiles } from '../cli/output/profile-files.ts';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  existsSync,
);
const SPEEDSCOPE = join(import.meta.dirname, '../node_modules/speedscope/dist/release');
if (CHROMIUM === undefined)
  console.log('skipped: speedscope opens nothing, because Chromium is not installed');

const FOLDED = 'app;main;parse 60\napp;main;write;vfs_write_[k] 30\nsh;fork 10\n';
const folder = mkdtempSync(join(tmpdir(), 'everyframe-formats-'));
const write = async (name: string): Promise<string> => {
  const file = join(folder, name);
  await saveProfiles({ output: file, force: true }, await loadProfiles(join(folder, 'in.folded')));
  return file;
};

beforeAll(() => writeFileSync(join(folder, 'in.folded'), FOLDED));
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(CHROMIUM === undefined)('speedscope', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: CHROMIUM!,
      args: ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'],
    });
  });
  afterAll(() => browser.close());

  /** As its command does it: the page is told of a script that holds the file. */
  async function open(file: string): Promise<string[]> {
    const script = join(folder, 'load.js');
    const data = [file.slice(folder.length + 1), readFileSync(file).toString('base64')];
    writeFileSync(script, `speedscope.loadFileFromBase64(...${JSON.stringify(data)})`);
    const page = await browser.newPage({ viewport: { width: 1280, height: 700 } });
    try {
      await page.goto(`${pathToFileURL(join(SPEEDSCOPE, 'index.html'))}#localProfilePath=${script}`);
      await page.getByText('Sandwich').click();
      await page.getByRole('row').nth(3).waitFor();
      const rows = await page.getByRole('row').allInnerTexts();
      return rows.map((row) => row.replace(/\s+/g, ' ').replace(' (<0.01%)', '').trim());
    } finally {
      await page.close();
    }
  }

  // it shows one profile at a time where a file has several: then the busiest process
  it.each([
    ['a.speedscope.json', ['60 (67%) 60 (67%) parse', '30 (33%) 30 (33%) vfs_write_[k]', '90 (100%) 0 main']],
    ['a.pb.gz', ['60 (60%) 60 (60%) parse', '30 (30%) 30 (30%) vfs_write', '90 (90%) 0 main']],
    ['a.trace.json', ['60.00ns (67%) 60.00ns (67%) parse', '90.00ns (100%) 0.00ns main']],
    ['a.folded', ['60 (60%) 60 (60%) parse', '30 (30%) 30 (30%) vfs_write_[k]', '90 (90%) 0 app']],
  ])('opens %s', async (name, expected) => {
    const rows = await open(await write(name));
    expect(rows).toEqual(expect.arrayContaining(expected));
  });

  it("'s own schema holds for a.speedscope.json", async () => {
    const schema = JSON.parse(readFileSync(join(SPEEDSCOPE, 'file-format-schema.json'), 'utf8'));
    const validate = new Ajv({ strict: false }).compile(schema);
    const file = JSON.parse(readFileSync(await write('a.speedscope.json'), 'utf8'));
    expect([validate(file), validate.errors]).toEqual([true, null]);
  });
});

describe.each(['flamegraph.pl', 'inferno-flamegraph'])('%s', (command) => {
  const isInstalled = spawnSync(command, ['--help']).error === undefined;
  if (!isInstalled) console.log(`skipped: ${command} draws nothing, because it is not installed`);

  it.skipIf(!isInstalled)('draws folded stacks', async () => {
    const { stdout, stderr, status } = spawnSync(command, [await write('a.folded')], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/<title>main \(90 samples, 90(\.00)?%\)/);
    expect(stdout).toMatch(/<title>vfs_write(_\[k\])? \(30 samples, 30(\.00)?%\)/);
  });
});

describe("the Firefox Profiler's own importer", () => {
  const run = (command: string, ...args: string[]) =>
    spawnSync('profiler-cli', [command, ...args], {
      encoding: 'utf8',
      timeout: 60_000,
      // its background process keeps what is open there
      env: { ...process.env, PROFILER_CLI_SESSION_DIR: join(folder, 'sessions') },
    });
  const isInstalled = run('--version').status === 0;
  if (!isInstalled)
    console.log('skipped: the Firefox Profiler opens nothing, because profiler-cli is not installed');
  afterAll(() => void (isInstalled && run('stop', '--all')));

  it.skipIf(!isInstalled)(
    'opens a file without times as a busy stretch, the busiest thread first',
    async () => {
      const profile = await loadProfiles(join(folder, 'in.folded'));
      Object.assign(profile, { periodType: { type: 'cpu', unit: 'nanoseconds' }, period: 10_000_000n });
      await saveProfiles({ output: join(folder, 'a.firefox.json'), force: true }, profile);
      const { status, stdout, stderr } = run('load', join(folder, 'a.firefox.json'));
      expect(status, stderr).toBe(0);
      expect(stdout).toMatch(/Selected thread: t-0 \(app/);
      expect(run('profile', 'info').stdout).toMatch(/t-0: app \[tid 0\] - 890\.0/);
      const { stdout: functions } = run('thread', 'functions');
      expect(functions).toMatch(/parse - self: 60 \(66\.7%\), total: 60/);
      expect(functions).toMatch(/vfs_write - self: 30 \(33\.3%\), total: 30/);
      expect(functions).toMatch(/main - self: 0 \(0\.0%\), total: 90 \(100\.0%\)/);
    },
  );
});
