/**
 * npm run dist [amd64|arm64[-musl]…]: a tarball, a Debian package and an .rpm per processor, a tarball for machines with musl, and an
 * OCI image for both processors, in build/release/: the same bytes each time. Images are made by root alone.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../agent/base/package-root.ts';
import { ARCHITECTURES, type Target } from './parts.ts';
import { currentRelease } from './release.ts';
import { layOut } from './tree.ts';

const root = packageRoot();
const release = currentRelease(root);

function pack(folder: string, name: string, epoch: number): string {
  const archive = join(folder, `${name}.tar.gz`);
  const tar = `tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=gnu --mtime=@${epoch}`;
  execFileSync('sh', ['-c', `${tar} -cf - "$1" | gzip -9n >"$2"`, 'sh', name, archive], { cwd: folder });
  return archive;
}

function make(script: string, ...args: string[]): void {
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(release.epoch) };
  execFileSync(join(root, 'scripts/release', script), args, { env, stdio: ['ignore', 2, 2] });
}

const TARGETS = new Map<string, Target>(
  ARCHITECTURES.flatMap((arch) => [
    [arch.name, { arch, libc: 'glibc' }],
    [`${arch.name}-musl`, { arch, libc: 'musl' }],
  ]),
);
const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !TARGETS.has(name));
if (unknown !== undefined) throw new Error(`${unknown} is none of ${[...TARGETS.keys()].join(', ')}`);
for (const [suffix, target] of TARGETS) {
  if (wanted.length > 0 && !wanted.includes(suffix)) continue;
  const name = `everyframe-${release.version}-linux-${suffix}`;
  const folder = join(root, 'build/release');
  await layOut(root, join(folder, name), target, release);
  const archive = pack(folder, name, release.epoch);
  if (target.libc === 'glibc') {
    make('deb.sh', join(folder, name), target.arch.name, release.version);
    make('rpm.sh', join(folder, name), target.arch.cpu, release.version);
  }
  const hash = createHash('sha256').update(readFileSync(archive)).digest('hex');
  console.log(`${archive}: ${(statSync(archive).size / 2 ** 20).toFixed(1)} MiB, sha256 ${hash}`);
}
if (wanted.length === 0) {
  if (process.getuid?.() === 0)
    make('image.sh', join(root, 'build/release'), release.version, release.commit);
  else console.error('no image: only root can make it');
}
