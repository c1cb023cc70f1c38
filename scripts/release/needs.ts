/** What an ELF file needs of the machine that runs it: versions of glibc, symbols of musl, and libraries. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';

/** The C library of a machine. */
export interface CLibrary {
  /** Of the libraries that are it. */
  names: RegExp;
  /** Of glibc 2: the minor version. */
  minor: number;
  /** Symbols without a version. */
  defines: readonly string[];
}

export const glibc = (minor: number): CLibrary => ({
  names: /^(libc|libm|libdl|librt|libpthread|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d$/,
  minor,
  defines: [],
});

export const musl = (file: string): CLibrary => ({
  names: /^libc(\.so|\.musl-\w+\.so\.1)$/,
  minor: 0,
  defines: needsOf(file).defines,
});

interface Needs {
  path: string;
  libraries: string[];
  /** Of symbols that it wants from glibc 2: the name, and the minor version. */
  versions: [string, number][];
  /** Wanted, of no version. */
  free: string[];
  defines: string[];
}

function needsOf(path: string): Needs {
  const symbols = readelf('--dyn-syms', path);
  const names = (pattern: RegExp, text = symbols): string[] => [...text.matchAll(pattern)].map((m) => m[1]!);
  return {
    path,
    libraries: names(/\(NEEDED\).*\[(.+)\]/g, readelf('-d', path)),
    versions: [...symbols.matchAll(/UND (\S+)@GLIBC_2\.(\d+)/g)].map((m) => [m[1]!, Number(m[2])]),
    free: names(/ GLOBAL +\S+ +UND (\w+)$/gm),
    defines: names(/ (?:GLOBAL|WEAK|UNIQUE) +\S+ +\d+ (\w+)/g),
  };
}

/** Sentences on what a machine with that C library and nothing else could not load. */
export function unmetNeeds(folder: string, libc: CLibrary, shipped: readonly string[]): string[] {
  const all = elfFiles(folder).map(needsOf);
  const defined = new Set([...libc.defines, ...all.flatMap(({ defines }) => defines)]);
  return all.flatMap(({ path, libraries, versions, free }) =>
    [
      ...libraries.filter((name) => !libc.names.test(name) && !shipped.includes(name)),
      ...versions
        .filter(([, minor]) => minor > libc.minor)
        .map(([name, minor]) => `${name} of glibc 2.${minor}`),
      ...free.filter((name) => !defined.has(name)),
    ].map((need) => `${path} needs ${need}`),
  );
}

const readelf = (what: string, path: string): string =>
  execFileSync('readelf', ['-W', what, path], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  });

function elfFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.bpf.o'))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => {
      const head = Buffer.alloc(4);
      const fd = openSync(path, 'r');
      readSync(fd, head);
      closeSync(fd);
      return head.equals(Buffer.from('\x7fELF', 'latin1'));
    });
}
