/** Packages of another release or architecture, unpacked into a cache directory without being installed. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { userCacheDirectory } from '../../agent/files/cache-directory.ts';

/** A broad set: C, C++, Rust, OCaml, Haskell, Fortran, Ada and assembly; old and new compilers' output. */
export const PACKAGES =
  `bash busybox-static coreutils curl dash findutils gawk git grep gzip jq less nano openssh-client openssh-server rsync sed sqlite3
  sudo systemd tar tmux util-linux vim-tiny xz-utils libsystemd-shared
  binutils-common cpp-14 gdb-minimal make ninja-build strace valgrind
  libc6 musl ld-musl libgcc-s1 libstdc++6 libgfortran5 libgnat-14 libgomp1 libtsan2 libasan8 libunwind8
  libssl3t64 libgcrypt20 libgnutls30t64 libnettle8t64 libhogweed6t64 libgmp10 libsodium23 libzstd1 liblzma5 libbrotli1
  libblas3 liblapack3 libopenblas0-pthread libfftw3-double3 libavcodec61 libx264-164 libx265-215 libdav1d7 libvpx9 libjxl0.11
  libicu76 libglib2.0-0t64 libgtk-4-1 libqt6core6t64 libqt6gui6 libwebkitgtk-6.0-4 libmozjs-128-0 libnode115
  libpython3.13 libperl5.40 libruby3.3 libluajit-5.1-2 php8.4-cli erlang-base guile-3.0-libs
  libllvm19 libclang-cpp19 librust-std ripgrep fd-find bat rustc libstd-rust-1.85 ocaml-base ghc-prof
  nginx-core apache2-bin redis-server postgresql-17 mariadb-server-core libprotobuf32t64 libgrpc++1.51t64 libboost-filesystem1.83.0
  libmpfr6 libcurl4t64 libxml2 libnss3 libcap2 libbpf1 libelf1t64 libffi8`.split(/\s+/);

export type Architecture = 'amd64' | 'arm64';

const cacheRoot = (): string => join(userCacheDirectory(process.env), 'everyframe-oracle');

/** The mirror that this machine itself uses; throws where it is not Debian. */
function findMirror(): string {
  const lists = ['/etc/apt/sources.list', ...listFolder('/etc/apt/sources.list.d')];
  const text = lists
    .filter(existsSync)
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n');
  const uri = /^(?:URIs:|deb(?: \[[^\]]*\])?)\s+(\S+\/debian)\/?(?:\s|$)/m.exec(text)?.[1];
  if (!uri)
    throw new Error('no Debian mirror in /etc/apt: the oracle needs one to fetch other packages from');
  return uri;
}

const listFolder = (path: string): string[] =>
  existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : [];

/** Unpacks PACKAGES and all that they depend on, as far as the suite has it; what is there is kept. The folder. Throws where one can't be had. */
export function unpackPackages(suite: string, architecture: Architecture): string {
  const root = join(cacheRoot(), `${suite}-${architecture}`);
  const [state, files] = [join(root, 'state'), join(root, 'files')];
  for (const folder of [join(state, 'lists/partial'), join(state, 'cache/archives/partial'), files])
    mkdirSync(folder, { recursive: true });
  const apt = aptFor(state, suite, architecture);
  if (listFolder(join(state, 'lists')).length < 2) apt('apt-get', '-qq', 'update');
  const missing = withDependencies(apt, architecture).filter((name) => !existsSync(join(files, name)));
  const failures: string[] = [];
  for (const name of missing) {
    try {
      unpack(apt, name, state, join(files, name));
    } catch (error) {
      failures.push(`${name}: ${(error as Error).message.split('\n')[0]}`);
    }
  }
  if (failures.length > 0)
    throw new Error(
      `${failures.length} of ${missing.length} packages of ${suite} ${architecture} can't be unpacked, as ${failures[0]}; ` +
        `look for room below ${root}, or remove ${join(state, 'lists')}, which may be old`,
    );
  return files;
}

/** Whole or not at all: a part would pass for what the package has. */
function unpack(apt: Apt, name: string, downloads: string, into: string): void {
  const isArchive = (file: string): boolean => file.endsWith('.deb');
  for (const left of readdirSync(downloads).filter(isArchive)) rmSync(join(downloads, left));
  apt('apt-get', '-qq', 'download', name);
  const archive = readdirSync(downloads).find(isArchive);
  if (!archive) throw new Error('apt-get has downloaded nothing');
  try {
    execFileSync('dpkg-deb', ['-x', join(downloads, archive), `${into}.part`]);
    renameSync(`${into}.part`, into);
  } finally {
    rmSync(`${into}.part`, { recursive: true, force: true });
    rmSync(join(downloads, archive));
  }
}

type Apt = (tool: string, ...args: string[]) => string;

/** apt with lists and a cache of its own, so that this machine's stay as they are. */
function aptFor(state: string, suite: string, architecture: Architecture): Apt {
  writeFileSync(join(state, 'sources.list'), `deb ${findMirror()} ${suite} main\n`);
  writeFileSync(join(state, 'status'), '');
  const options = [
    ['Dir::Etc::sourcelist', join(state, 'sources.list')],
    ['Dir::Etc::sourceparts', '-'],
    ['Dir::State', state],
    ['Dir::State::status', join(state, 'status')],
    ['Dir::Cache', join(state, 'cache')],
    ['APT::Architecture', architecture],
    ['APT::Architectures', architecture],
    ['APT::Sandbox::User', 'root'],
  ].flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  return (tool, ...args) =>
    execFileSync(tool, [...options, ...args], { cwd: state, encoding: 'utf8', maxBuffer: 256 << 20 });
}

/** Names, without packages that have the same content on every architecture: they hold no machine code. */
function withDependencies(apt: Apt, architecture: Architecture): string[] {
  const known = new Set(apt('apt-cache', 'pkgnames').split('\n'));
  // a library with 64-bit time has had a name of its own since trixie
  const roots = PACKAGES.flatMap((name) => [name, name.replace(/t64$/, '')].find((n) => known.has(n)) ?? []);
  const others = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'];
  const depends = apt('apt-cache', 'depends', '--recurse', ...others.map((kind) => `--no-${kind}`), ...roots);
  const names = depends.split('\n').filter((line) => /^[a-z0-9]/.test(line) && known.has(line));
  const shown = apt('apt-cache', 'show', '--no-all-versions', ...new Set(names));
  return [...shown.matchAll(/^Package: (\S+)\n(?:.+\n)*?Architecture: (\S+)$/gm)]
    .filter(([, , built]) => built === architecture)
    .map(([, name]) => name!);
}
