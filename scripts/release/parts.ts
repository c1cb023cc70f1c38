/** What a release takes from npm for each processor, pinned by hash, and where it is kept once fetched. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface Architecture {
  /** As Debian and OCI call it. */
  name: 'amd64' | 'arm64';
  /** As the kernel does. */
  cpu: 'x86_64' | 'aarch64';
  /** As Node does. */
  node: 'x64' | 'arm64';
  nodeIntegrity: string;
}

/** Long-term support; later ones break the workers' limit of memory (docs/decisions/process/releases.md). */
export const NODE_VERSION = '22.23.3';
export const ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'amd64',
    cpu: 'x86_64',
    node: 'x64',
    nodeIntegrity:
      'sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==',
  },
  {
    name: 'arm64',
    cpu: 'aarch64',
    node: 'arm64',
    nodeIntegrity:
      'sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==',
  },
];

interface LockedPackage {
  version: string;
  integrity?: string;
  license?: string;
}

const locked = (root: string, name: string): LockedPackage | undefined =>
  (
    JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, LockedPackage>;
    }
  ).packages[`node_modules/${name}`];

/** The folder of Node's package: bin/node and LICENSE. */
export const fetchNode = (arch: Architecture): string =>
  fetchPackage(`node-linux-${arch.node}`, NODE_VERSION, arch.nodeIntegrity);

/** The folder of DuckDB's library for that processor. */
export function fetchDuckdb(root: string, arch: Architecture): string {
  const name = `@duckdb/node-bindings-linux-${arch.node}`;
  const lock = locked(root, name);
  if (!lock?.integrity) throw new Error(`${name} is not in package-lock.json`);
  return fetchPackage(name, lock.version, lock.integrity);
}

/** @throws Error if what the registry gives is not what was pinned */
function fetchPackage(name: string, version: string, integrity: string): string {
  const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'everyframe/npm');
  const target = join(cache, `${name.replaceAll(/[@/]/g, '_')}-${version}`);
  if (existsSync(target)) return target;
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(`${target}.`);
  const file = execFileSync('npm', ['pack', '--silent', '--pack-destination', work, `${name}@${version}`], {
    encoding: 'utf8',
  }).trim();
  const archive = join(work, file.split('\n').at(-1)!);
  const hash = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (hash !== integrity) throw new Error(`${name}@${version} is ${hash}, not ${integrity}`);
  execFileSync('tar', ['-xzf', archive, '-C', work, '--no-same-owner']);
  renameSync(join(work, 'package'), target);
  rmSync(work, { recursive: true });
  return target;
}
