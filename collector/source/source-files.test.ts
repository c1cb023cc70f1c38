import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SourceFiles } from './source-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-source-'));
const root = join(folder, 'project');
const SECRET = 'the secret of another directory';
let files: SourceFiles;

beforeAll(async () => {
  mkdirSync(join(root, 'src/.git'), { recursive: true });
  mkdirSync(join(root, 'empty'));
  mkdirSync(`${root}-secrets`);
  writeFileSync(join(root, 'src/app.py'), 'one\ntwo\r\nthree\n');
  writeFileSync(join(root, 'main.c'), 'int main;');
  writeFileSync(join(root, 'src/.git/config'), 'password');
  writeFileSync(join(root, '.env'), 'password');
  writeFileSync(join(root, 'program'), 'ELF\0');
  writeFileSync(join(root, 'large.py'), '');
  truncateSync(join(root, 'large.py'), 2 ** 24);
  writeFileSync(join(folder, 'secret.py'), SECRET);
  writeFileSync(`${root}-secrets/secret.py`, SECRET);
  symlinkSync(join(folder, 'secret.py'), join(root, 'link.py'));
  symlinkSync(folder, join(root, 'up'));
  symlinkSync('app.py', join(root, 'src/alias.py'));
  symlinkSync('loop', join(root, 'loop'));
  execFileSync('mkfifo', [join(root, 'pipe')]);
  writeFileSync(join(root, 'long.py'), Array.from({ length: 10_000 }, (_, i) => `line ${i + 1}`).join('\n'));
  files = await SourceFiles.open([join(root, 'empty'), root]);
});
afterAll(() => rmSync(folder, { recursive: true }));

const read = async (name: string, line = 1): Promise<string> => {
  const answer = await files.read(name, line);
  return 'lines' in answer
    ? `${answer.path.slice(root.length)}: ${answer.lines.join('|')}`
    : `no: ${answer.problem}`;
};

describe('source files', () => {
  it('are found by their path, by a URL, and by the end of the path they had elsewhere', async () => {
    expect(await read(join(root, 'src/app.py'))).toBe('/src/app.py: one|two|three');
    expect(await read(pathToFileURL(join(root, 'src/app.py')).href)).toBe('/src/app.py: one|two|three');
    expect(await read('/build/agent7/src/app.py')).toBe('/src/app.py: one|two|three');
    expect(await read('../src/./app.py')).toBe('/src/app.py: one|two|three');
    expect(await read('main.c')).toBe('/main.c: int main;');
    expect(await read(join(root, 'src/alias.py'))).toBe('/src/app.py: one|two|three');
  });

  it('are found where the directory was named by a link', async () => {
    symlinkSync(root, join(folder, 'named'));
    const linked = await SourceFiles.open([join(folder, 'named')]);
    expect(await linked.read(join(folder, 'named/main.c'), 1)).toMatchObject({ path: join(root, 'main.c') });
  });

  it.each([
    ['/etc/shadow', /is not below/],
    ['/elsewhere/main.c/../../etc/passwd', /is not below/],
    ['ROOT/../secret.py', /is not below/],
    ['ROOT-secrets/secret.py', /is not below/],
    ['ROOT/link.py', /link\.py leads to another place/],
    ['ROOT/up/secret.py', /secret\.py leads to another place/],
    ['ROOT/up/../../../etc/shadow', /is not below/],
    ['ROOT/loop', /ELOOP/],
    ['ROOT/.env', /is hidden/],
    ['ROOT/src/.git/config', /is hidden/],
    ['ROOT/program', /program is not text/],
    ['ROOT/large.py', /has 16777216 bytes: at most 8388608/],
    ['ROOT/pipe', /pipe is not a file/],
    ['ROOT/src', /src is not a file/],
    ['ROOT', /is not below/],
    ['ROOT/src/app.py\0.txt', /is not below/],
    ['file://%', /is not below/],
    ['', /is not below/],
  ])('are not served as %s', async (name, problem) => {
    const answer = await read(name.replace('ROOT', root));
    expect(answer).toMatch(/^no: /);
    expect(answer).toMatch(problem);
  });

  it('never hold what lies elsewhere, whatever the name', async () => {
    const part = fc.constantFrom(
      '..',
      '.',
      'up',
      'secret.py',
      'link.py',
      'project',
      'project-secrets',
      'src',
      root,
      folder,
      '',
      '%2e%2e',
      '/',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 8 }), fc.boolean(), async (parts, isUrl) => {
        expect(await read(`${isUrl ? 'file://' : ''}${parts.join('/')}`)).not.toContain(SECRET);
      }),
      { numRuns: 300 },
    );
  });

  it('of many lines are cut around the wanted one', async () => {
    const answer = await files.read(join(root, 'long.py'), 7000);
    expect(answer).toMatchObject({ lineCount: 10_000, firstLine: 5001 });
    expect('lines' in answer && [answer.lines.length, answer.lines[0]]).toEqual([4000, 'line 5001']);
    expect(await files.read(join(root, 'long.py'), 9999)).toMatchObject({ firstLine: 6001 });
  });

  it('are none unless directories are named, and not the whole machine', async () => {
    expect(await SourceFiles.NONE.read(join(root, 'main.c'), 1)).toEqual({
      problem: expect.stringContaining('start it with --source DIR'),
    });
    await expect(SourceFiles.open(['/'])).rejects.toThrow('--source /: every file of this machine');
    await expect(SourceFiles.open([join(folder, 'none')])).rejects.toThrow(/--source .*none: ENOENT/);
    await expect(SourceFiles.open([join(root, 'main.c')])).rejects.toThrow(/ENOTDIR/);
  });
});
