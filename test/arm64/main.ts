/**
 * `npm run test:runtimes:arm64 [-- ruby lua … --suite trixie]`: the tests of runtimes with Debian's interpreters for arm64, in an
 * emulated machine; what they show goes into docs/interpreters/tested.json.
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
import { boot, type Console, exitOnSignals } from '../kernels/virtual-machine.ts';

interface Runtime {
  /** Debian's. */
  packages: string[];
  /** Files below test/runtimes. */
  tests: string[];
}

const LUAS = ['5.1', '5.2', '5.3', '5.4'];
const RUNTIMES: Readonly<Record<string, Runtime>> = {
  hotspot: { packages: ['default-jdk-headless'], tests: ['hotspot', 'split-hotspot'] },
  lua: { packages: LUAS.map((version) => `lua${version}`), tests: ['lua', 'split-lua'] },
  luajit: { packages: ['luajit'], tests: ['luajit', 'split-luajit'] },
  perl: { packages: ['perl'], tests: ['perl', 'split-perl'] },
  php: { packages: ['php-cli'], tests: ['php', 'split-php'] },
  python: { packages: ['python3'], tests: ['python', 'split-python'] },
  ruby: { packages: ['ruby'], tests: ['ruby', 'split-ruby'] },
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
const INSTALL_LIMIT_MS = 600_000;
const MAX_REPORT_BYTES = 64 << 20;

const { values, positionals } = parseArgs({
  options: { suite: { type: 'string', default: 'trixie' } },
  allowPositionals: true,
});
const chosen = positionals.length > 0 ? positionals : Object.keys(RUNTIMES);
const unknown = chosen.filter((name) => !(name in RUNTIMES));
if (unknown.length > 0)
  throw new Error(`${unknown}: no tests for arm64, choose from ${Object.keys(RUNTIMES).join(', ')}`);
const missing = missingTools('arm64');
if (missing.length > 0)
  throw new Error(`install first: ${missing.join(', ')} (scripts/setup.sh --test-arm64)`);

exitOnSignals();
const scratch = mkdtempSync(join(tmpdir(), 'everyframe-arm64-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
const node = prepareArm64Guest().NODE;
const modules = installModules();
for (const name of chosen) {
  const console_ = await boot({
    architecture: 'arm64',
    kernel: fetchKernel(KERNEL, 'arm64'),
    initramfs: packGuest(name, RUNTIMES[name]!),
    programsOnly: false,
    cpus: 1,
    memoryMiB: MEMORY_MIB,
    limitMs: LIMIT_MS,
  });
  report(name, console_);
}

/** What package-lock.json names, for arm64; made anew when that changes. */
function installModules(): string {
  const top = packageRoot();
  const lock = readFileSync(join(top, 'package-lock.json'));
  const hash = createHash('sha256').update(lock).digest('hex').slice(0, 12);
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

/** Path of the initramfs. */
function packGuest(name: string, { packages, tests }: Runtime): string {
  const folder = join(userCacheDirectory(process.env), 'everyframe/runtimes-arm64', name);
  const fetched = spawnSync(
    join(packageRoot(), 'test/runtimes/fetch-packages.sh'),
    [folder, values.suite, ...BASE, ...packages],
    { encoding: 'utf8', env: { ...process.env, ARCHITECTURE: 'arm64' }, timeout: INSTALL_LIMIT_MS },
  );
  if (fetched.status !== 0)
    throw new Error(`${packages.join(', ')} of ${values.suite} for arm64: ${fetched.stderr.trim()}`);
  const out = join(scratch, 'initramfs.cpio');
  const files = tests.map((test) => `test/runtimes/${test}.test.ts`);
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
function report(name: string, { sections, failure, seconds }: Console): void {
  for (const [marker, lines] of sections)
    if (marker.startsWith('tests of')) console.log([marker, ...lines].join('\n'));
  const kernel = sections.get('kernel')?.[0] ?? 'no kernel';
  console.log(`${name} on ${kernel}: ${failure || 'done'} in ${seconds.toFixed(0)} s`);
  const reports = [...sections].filter(([marker]) => marker.startsWith('report '));
  if (failure || reports.length < RUNTIMES[name]!.tests.length) process.exitCode = 1;
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
