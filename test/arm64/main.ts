/**
 * `npm run test:arm64 [-- ruby waits … --suite trixie --only split]`: live tests with Debian's programs for arm64, in an emulated machine; what
 * those of runtimes show goes into docs/interpreters/tested.json.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { packageRoot } from '../../agent/base/package-root.ts';
import { userCacheDirectory } from '../../agent/files/cache-directory.ts';
import { prepareArm64Guest } from '../kernels/arm64-guest.ts';
import { fetchKernel, missingTools, type Suite } from '../kernels/matrix.ts';
import { boot, type Console, EMULATORS, exitOnSignals } from '../kernels/virtual-machine.ts';

interface Group {
  /** Debian's. */
  packages: string[];
  /** Files below test/. */
  tests: string[];
}

const runtime = (name: string, packages = [name]): Group => ({
  packages,
  tests: [`runtimes/${name}`, `runtimes/split-${name}`],
});
const COMPILER = ['gcc', 'libc6-dev', 'make', 'binutils'];
/** What has probes or an allocator of its own. */
const PROBED = [
  ...['g++', 'systemtap-sdt-dev', 'python3', 'libpython3-dev'],
  ...['libjemalloc2', 'libtcmalloc-minimal4', 'musl-tools'],
];
const GROUPS: Readonly<Record<string, Group>> = {
  beam: runtime('beam', ['erlang-base', 'erlang-crypto']),
  hotspot: runtime('hotspot', ['default-jdk-headless']),
  lua: runtime(
    'lua',
    ['5.1', '5.2', '5.3', '5.4'].map((version) => `lua${version}`),
  ),
  luajit: runtime('luajit'),
  perl: runtime('perl'),
  php: runtime('php', ['php-cli']),
  python: runtime('python', ['python3']),
  ruby: runtime('ruby'),
  v8: runtime('v8', []),
  waits: { packages: [...COMPILER, 'python3', 'bpftool'], tests: ['off-cpu', 'waiting-stacks'] },
  events: {
    packages: [...COMPILER, ...PROBED],
    tests: ['events', 'allocations'],
  },
  contexts: { packages: COMPILER, tests: ['process-context', 'thread-context'] },
  native: {
    packages: [...COMPILER, 'g++', 'musl-tools', 'python3', 'util-linux'],
    tests: ['unwind', 'unwind-undescribed', 'stack-pages', 'kernel-names', 'jit'],
  },
};
/** Beside those: what the guest itself runs, and what the product is linked with. */
const BASE = [
  'busybox-static',
  'libc6',
  'libstdc++6',
  'libbpf1',
  'zlib1g',
  'base-files',
  'bash',
  'coreutils',
];
/** Whose kernel boots. */
const KERNEL: Suite = 'trixie';
/** Of the guest's files, its programs and the kernel's own: all are in memory. */
const MEMORY_MIB = 6144;
const LIMIT_MS = 7_200_000;
const EMULATOR = EMULATORS.arm64.command;
/** 7.2 ends processes of Node (docs/testing.md); Debian trixie's takes its place. */
const MIN_MAJOR = 10;
const INSTALL_LIMIT_MS = 600_000;
const MAX_REPORT_BYTES = 64 << 20;

const { values, positionals } = parseArgs({
  options: { suite: { type: 'string', default: 'trixie' }, only: { type: 'string', default: '' } },
  allowPositionals: true,
});
const chosen = positionals.length > 0 ? positionals : Object.keys(GROUPS);
const unknown = chosen.filter((name) => !(name in GROUPS));
if (unknown.length > 0)
  throw new Error(`${unknown}: no tests for arm64, choose from ${Object.keys(GROUPS).join(', ')}`);
const missing = missingTools('arm64');
if (missing.length > 0)
  throw new Error(`install first: ${missing.join(', ')} (scripts/setup.sh --test-arm64)`);

if (majorOf(EMULATOR) < MIN_MAJOR)
  process.env['PATH'] = `${join(packageRoot(), 'test/arm64/newer')}:${process.env['PATH']}`;
exitOnSignals();
const scratch = mkdtempSync(join(tmpdir(), 'everyframe-arm64-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
const node = prepareArm64Guest().NODE;
const modules = installModules();
for (const name of chosen) {
  const { packages, tests } = GROUPS[name]!;
  const files = tests.map((test) => `test/${test}.test.ts`).filter((file) => file.includes(values.only));
  const console_ = await boot({
    architecture: 'arm64',
    kernel: fetchKernel(KERNEL, 'arm64'),
    initramfs: packGuest(name, packages, files),
    programsOnly: false,
    cpus: 1,
    memoryMiB: MEMORY_MIB,
    limitMs: LIMIT_MS,
  });
  report(name, console_, files.length);
}

function majorOf(emulator: string): number {
  const { stdout } = spawnSync(emulator, ['--version'], { encoding: 'utf8' });
  return Number(/version (\d+)/.exec(stdout)?.[1]);
}

/** What package-lock.json names, for arm64; made anew when that changes. */
function installModules(): string {
  const top = packageRoot();
  const lock = readFileSync(join(top, 'package-lock.json'));
  const hash = hashOf(lock);
  const folder = join(userCacheDirectory(process.env), `everyframe/modules-arm64-${hash}`);
  const modules = join(folder, 'node_modules');
  if (existsSync(join(modules, '.package-lock.json'))) return modules;
  mkdirSync(folder, { recursive: true });
  for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(top, file), join(folder, file));
  const options = [
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--os=linux',
    '--cpu=arm64',
    '--libc=glibc',
  ];
  execFileSync('npm', ['ci', ...options], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: INSTALL_LIMIT_MS,
  });
  return modules;
}

function hashOf(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex').slice(0, 12);
}

/** Path of the initramfs. */
function packGuest(name: string, packages: string[], files: string[]): string {
  const of = hashOf([...BASE, ...packages].join(' '));
  const folder = join(userCacheDirectory(process.env), `everyframe/packages-arm64/${name}-${of}`);
  const fetched = spawnSync(
    join(packageRoot(), 'test/runtimes/fetch-packages.sh'),
    [folder, values.suite, ...BASE, ...packages],
    { encoding: 'utf8', env: { ...process.env, ARCHITECTURE: 'arm64' }, timeout: INSTALL_LIMIT_MS },
  );
  if (fetched.status !== 0)
    throw new Error(`${packages.join(', ')} of ${values.suite} for arm64: ${fetched.stderr.trim()}`);
  const out = join(scratch, 'initramfs.cpio');
  execFileSync(join(packageRoot(), 'test/arm64/make-guest.sh'), [
    out,
    join(folder, values.suite),
    node,
    modules,
    ...files,
  ]);
  return out;
}

/** Prints what the tests printed, and records their reports. */
function report(name: string, { sections, failure, seconds }: Console, files: number): void {
  for (const [marker, lines] of sections)
    if (marker.startsWith('tests of')) console.log([marker, ...lines].join('\n'));
  const kernel = sections.get('kernel')?.[0] ?? 'no kernel';
  console.log(`${name} on ${kernel}: ${failure || 'done'} in ${seconds.toFixed(0)} s`);
  const reports = [...sections].filter(([marker]) => marker.startsWith('report '));
  if (failure || reports.length < files) process.exitCode = 1;
  for (const [, lines] of reports) record(Buffer.from(lines.join(''), 'base64'));
}

function record(zipped: Buffer): void {
  const report = gunzipSync(zipped, { maxOutputLength: MAX_REPORT_BYTES });
  if (!(JSON.parse(report.toString()) as { success: boolean }).success) process.exitCode = 1;
  const path = join(scratch, 'report.json');
  writeFileSync(path, report);
  execFileSync('node', [join(packageRoot(), 'dist/scripts/runtime-support.js'), '--record', path], {
    stdio: 'inherit',
  });
}
