/** CPython inside other programs: in the library that Debian's gdb and vim are linked with, and that uWSGI and LibreOffice load. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterEach, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { hasTool, missingRights } from '../support/fixtures.ts';
import { Recording, type Stack } from '../support/recording.ts';
import { fetchPackages, inRoot, isWholeMatrix, ROOTS } from './package-roots.ts';

const SCRIPT = join(import.meta.dirname, 'python/recurse.py');
const CALLS = 20;
/** At the bottom of the recursion, with all calls down to it. */
const SAMPLES = 100;
const LIMIT_MS = 240_000;

interface Embedder {
  title: string;
  command: readonly [string, ...string[]];
  env?: Readonly<Record<string, string>>;
}

function findEmbedders(): Embedder[] {
  const found: Embedder[] = [];
  if (hasTool('gdb')) found.push({ title: 'gdb', command: ['gdb', '-nx', '-batch', '-x', SCRIPT] });
  else console.log('skipped: gdb is not installed');
  return isWholeMatrix ? [...found, ...debianEmbedders(), ...libreOffice()] : found;
}

function debianEmbedders(): Embedder[] {
  const root = fetchPackages(join(ROOTS, 'embedders'), 'bookworm', ['uwsgi-plugin-python3', 'vim-nox']);
  if (!root) return [];
  const [vim, uwsgi] = [inRoot(root, '/usr/bin/vim.nox'), inRoot(root, '/usr/bin/uwsgi-core')];
  const script = vim.place(SCRIPT);
  const plugin = ['--plugins-dir', '/usr/lib/uwsgi/plugins', '--plugin', 'python311'];
  return [
    { title: 'vim', command: [...vim.command, '-u', 'NONE', '-es', '-c', `py3file ${script}`] },
    { title: 'uWSGI', command: [...uwsgi.command, ...plugin, '--pyrun', script] },
  ];
}

/** A macro, which the office runs as it starts. */
function libreOffice(): Embedder[] {
  const packages = ['libreoffice-writer-nogui', 'libreoffice-script-provider-python'];
  const root = fetchPackages(join(ROOTS, 'libreoffice'), 'bookworm', packages);
  if (!root) return [];
  const home = join(root, 'usr/lib/libreoffice');
  // what its package does once it is unpacked
  cpSync(join(home, 'share/.registry'), join(root, 'etc/libreoffice/registry'), { recursive: true });
  copyFileSync(SCRIPT, join(home, 'share/Scripts/python/recurse.py'));
  const office = inRoot(root, '/usr/lib/libreoffice/program/soffice.bin');
  const flags = ['--headless', '--norestore', '-env:UserInstallation=file:///tmp/office'];
  // there is no /proc in that root, by which it would find them
  const env = { HOME: '/tmp', LD_LIBRARY_PATH: '/usr/lib/libreoffice/program' };
  // its first start makes its settings and ends
  const [program, ...args] = office.command;
  spawnSync(program, [...args, ...flags, '--terminate_after_init'], {
    stdio: 'ignore',
    timeout: LIMIT_MS,
    env: { ...process.env, ...env },
  });
  const macro = 'vnd.sun.star.script:recurse.py$main?language=Python&location=share';
  return [{ title: 'LibreOffice', command: [...office.command, ...flags, macro], env }];
}

const isAtBottom = ({ frames }: Stack): boolean => frames[0] === 'spin' && !frames.at(-1)!.startsWith('[cut');
const callsOf = ({ frames }: Stack): number => frames.filter((name) => name === 'recurse').length;
const total = (stacks: Stack[]): number => stacks.reduce((sum, { count }) => sum + count, 0);

if (missingRights) console.log(`skipped: ${missingRights}`);
const embedders = missingRights ? [] : findEmbedders();
// why is printed above
if (embedders.length === 0) it.skip('Python in other programs', () => {});

describe.each(embedders)('Python in $title', ({ command, env }) => {
  let child: ChildProcess | undefined;
  let recording: Recording | undefined;

  afterEach(async () => {
    child?.kill('SIGKILL');
    await recording?.stop();
  });

  it('shows its functions between the native frames of the program', {
    timeout: LIMIT_MS + 60_000,
  }, async () => {
    child = spawn(command[0], command.slice(1), { stdio: 'ignore', env: { ...process.env, ...env } });
    recording = await Recording.start({ targets: [toPid(child.pid!)] });
    await recording.until((stacks) => total(stacks.filter(isAtBottom)) >= SAMPLES, LIMIT_MS);
    const stacks = recording.stacks().filter(isAtBottom);
    const whole = stacks.filter((stack) => callsOf(stack) === CALLS && stack.frames.includes('<module>'));
    expect(total(whole) / total(stacks)).toBeGreaterThan(0.98);
    // below the script the program's own functions, down to the C library's
    expect(whole.every(({ frames }) => frames.some((name) => /^__libc_start|libc\.so/.test(name)))).toBe(
      true,
    );
  });
});
