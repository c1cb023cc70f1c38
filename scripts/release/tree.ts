/** Lays out what a release has, in the shape of a built checkout, with Node beside it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleCommands } from './bundle.ts';
import { unmetNeeds } from './needs.ts';
import { partsOf, type Release, writePapers } from './papers.ts';
import { type Architecture, fetchDuckdb, fetchNode } from './parts.ts';
import { writeShare } from './share.ts';

/** Minor version of glibc 2: Node's own. */
const GLIBC = 28;
const LIBRARIES = ['libstdc++.so.6', 'libgcc_s.so.1'];
const DEBIAN_SOURCES = ['libbpf', 'elfutils', 'zlib'];

/** @throws Error if a part of it needs more than glibc */
export async function layOut(
  root: string,
  target: string,
  arch: Architecture,
  release: Release,
): Promise<void> {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(join(target, 'build/workers'), { recursive: true });
  const node = fetchNode(arch);
  const duckdb = fetchDuckdb(root, arch);
  const copy = (from: string, to: string): void =>
    cpSync(from, join(target, to), { recursive: true, dereference: true });

  copyNative(root, target, arch);
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
  installNode(node, target);
  for (const name of ['node-api', 'node-bindings'])
    copy(join(root, 'node_modules/@duckdb', name), `node_modules/@duckdb/${name}`);
  copy(duckdb, `node_modules/@duckdb/node-bindings-linux-${arch.node}`);
  rmSync(join(target, 'node_modules/@duckdb/node-api/node_modules'), { recursive: true, force: true });
  copy(join(root, 'scripts/release/write-code.sh'), 'bin/everyframe-write-code');
  writePackage(root, target, release);
  await writeShare(target, release);

  const packages = await bundleCommands(root, target);
  for (const name of ['@duckdb/node-api', '@duckdb/node-bindings', 'preact', 'uplot']) packages.add(name);
  const sources = Object.fromEntries(DEBIAN_SOURCES.map((name) => [name, sourceOf(root, name)]));
  writePapers(target, release, partsOf(root, packages, { node, duckdb, sources }, arch));
  refuseNeeds(target);
}

const sourceOf = (root: string, name: string): string =>
  execFileSync(join(root, 'scripts/release/fetch-source.sh'), ['bookworm', name], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();

function copyNative(root: string, target: string, arch: Architecture): void {
  const out = join(root, 'build/release', arch.cpu);
  execFileSync(join(root, 'scripts/release/native.sh'), [arch.cpu, out], { stdio: ['ignore', 2, 2] });
  const names = execFileSync('make', ['-s', 'list-native'], { cwd: root, encoding: 'utf8' });
  for (const name of names.trim().split(' ')) cpSync(join(out, name), join(target, 'build', name));
  for (const name of LIBRARIES)
    cpSync(join(out, 'lib', name), join(target, 'lib', name), { recursive: true });
}

/** It finds libstdc++ beside itself. */
function installNode(from: string, target: string): void {
  const node = join(target, 'lib/node');
  cpSync(join(from, 'bin/node'), node);
  chmodSync(node, 0o755);
  execFileSync('patchelf', ['--set-rpath', '$ORIGIN', node]);
}

/** The root of the product is where this lies; `imports` is left out: bundles have it. */
function writePackage(root: string, target: string, { version, commit }: Release): void {
  const { name, description, license, type } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const text = JSON.stringify({ name, version, commit, description, license, type }, null, 2);
  writeFileSync(join(target, 'package.json'), `${text}\n`);
}

function refuseNeeds(target: string): void {
  const unmet = unmetNeeds(target, GLIBC, [...LIBRARIES, 'libduckdb.so']);
  if (unmet.length > 0) throw new Error(`glibc 2.${GLIBC} is not enough:\n${unmet.join('\n')}`);
}
