/** What `npm run dist` packs for this processor, where there is a C library of 2020, a shell, and nothing else. */
import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ARCHITECTURES } from '../scripts/release/parts.ts';
import { currentRelease } from '../scripts/release/release.ts';
import { layOut } from '../scripts/release/tree.ts';

const root = join(import.meta.dirname, '..');
const arch = ARCHITECTURES.find(({ node }) => node === process.arch)!;
const TOOLS = ['patchelf', 'm4', 'dpkg-source', 'readelf', `${arch.cpu}-linux-gnu-g++`];
const has = (tool: string): boolean => spawnSync('sh', ['-c', 'command -v "$0"', tool]).status === 0;
const missing = TOOLS.filter((tool) => !has(tool));
const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log('skipped: needs root');
else if (missing.length > 0)
  console.log(`skipped: ${missing.join(', ')} missing (scripts/setup.sh --test installs what is needed)`);

/** Fetching and compiling for an old C library. */
const MAKING_MS = 600_000;
const PRODUCT = '/opt/everyframe/bin/everyframe';

const unpack = (suite: string, name: string): string =>
  execFileSync(join(root, 'test/kernels/fetch-packages.sh'), [suite, arch.name, name], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();

describe.runIf(isRoot && missing.length === 0)('a release', () => {
  const bare = mkdtempSync(join(tmpdir(), 'everyframe-release-'));
  const release = currentRelease(root);

  beforeAll(async () => {
    for (const name of ['bin', 'dev', 'opt', 'proc', 'root', 'sys', 'tmp']) mkdirSync(join(bare, name));
    const libc = unpack('bullseye', 'libc6');
    for (const name of ['lib', 'lib64'])
      if (existsSync(join(libc, name)))
        cpSync(join(libc, name), join(bare, name), { recursive: true, verbatimSymlinks: true });
    cpSync(join(unpack('trixie', 'busybox-static'), 'usr/bin/busybox'), join(bare, 'bin/busybox'));
    execFileSync('chroot', [bare, '/bin/busybox', '--install', '-s', '/bin']);
    await layOut(root, join(bare, 'opt/everyframe'), { arch, libc: 'glibc' }, release);
  }, MAKING_MS);
  afterAll(() => rmSync(bare, { recursive: true, force: true }));

  /** In a mount namespace of its own, so that nothing stays mounted. */
  const run = (...command: string[]): SpawnSyncReturns<string> => {
    const script =
      'for name in proc sys dev; do mount --rbind "/$name" "$0/$name" || exit; done; exec chroot "$0" /bin/env -i PATH=/bin HOME=/root "$@"';
    return spawnSync('unshare', ['-m', 'sh', '-c', script, bare, ...command], { encoding: 'utf8' });
  };

  it('is the version and the commit that it was made of', () => {
    const { stdout, stderr } = run(PRODUCT, '--version');
    expect(stdout + stderr).toContain(`${release.version} (commit ${release.commit}`);
  });

  it('can run where there is no Node, no compiler, and no library but that of C', () => {
    const { status, stdout, stderr } = run(PRODUCT, 'doctor');
    expect([status, stdout + stderr]).toEqual([0, expect.stringContaining('everyframe can run here')]);
  });

  it('samples a command and reports what it did', () => {
    const work = 'i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done';
    const recorded = run(
      ...[PRODUCT, 'record', '-F', '997', '--force', '-o', '/root/x.folded', '--', 'sh', '-c', work],
    );
    expect([recorded.status, recorded.stderr]).toEqual([0, expect.stringMatching(/\d+ samples/)]);
    const stacks = readFileSync(join(bare, 'root/x.folded'), 'utf8').trim().split('\n');
    expect(stacks.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)).toBeGreaterThan(20);
    const report = run(PRODUCT, 'report', '/root/x.folded', '--by', 'process');
    expect([report.status, report.stdout]).toEqual([0, expect.stringContaining('busybox')]);
  });
});
