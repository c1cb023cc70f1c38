/** A program as it is shipped, without names, and the frames that an agent sends of it. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bufferSource } from '../../common/base/byte-source.ts';
import { computeFileId } from '../../common/elf/file-id.ts';
import {
  emptyMapping,
  emptyProcess,
  emptyProfile,
  type Profile,
} from '../../common/profile/model/profile.ts';
import { cpuType } from '../../common/profile/model/profile-type.ts';

export interface StrippedProgram {
  /** With everything. */
  path: string;
  /** What runs, and what was split off. */
  strippedPath: string;
  debugPath: string;
  gnuBuildId: string;
  /** Addresses inside of functions, as nm has them. */
  addresses: Map<string, bigint>;
}

const SOURCE = `
__attribute__((noinline)) static int inner(int n) { int s = 0; while (n-- > 0) s += n; return s; }
#ifdef OTHER
int other;
#endif
__attribute__((noinline)) static int sum(int n) { return n + 2; }
__attribute__((noinline)) static int outer(int n) { return inner(n) + sum(n); }
int main(int argc, char **argv) { (void)argv; return outer(argc) & 1; }
`;

/** Needs gcc and binutils. Another flag makes another build ID. */
export function buildStripped(directory: string, flag = '-O0'): StrippedProgram {
  const path = join(directory, 'demo');
  const [strippedPath, debugPath] = [join(directory, 'demo.stripped'), join(directory, 'demo.debug')];
  writeFileSync(`${path}.c`, SOURCE);
  execFileSync('gcc', ['-g', '-O0', flag, '-static-pie', '-Wl,--build-id', '-o', path, `${path}.c`]);
  execFileSync('objcopy', ['--only-keep-debug', path, debugPath]);
  execFileSync('objcopy', ['--strip-all', path, strippedPath]);
  const addresses = new Map<string, bigint>();
  for (const line of execFileSync('nm', [path], { encoding: 'utf8', maxBuffer: 2 ** 26 }).split('\n')) {
    const [, address, name] = /^([0-9a-f]+) [tT] (\w+)$/.exec(line) ?? [];
    if (name !== undefined) addresses.set(name, BigInt(`0x${address}`) + 5n);
  }
  const notes = execFileSync('readelf', ['-n', path], { encoding: 'utf8' });
  return { path, strippedPath, debugPath, gnuBuildId: /Build ID: ([0-9a-f]+)/.exec(notes)![1]!, addresses };
}

/** 5 samples in inner and 3 in sum, without a single name, with the IDs of the stripped file. */
export function namelessProfile({ strippedPath, gnuBuildId, addresses }: StrippedProgram): Profile {
  const profile = emptyProfile();
  const fileId = computeFileId(bufferSource(readFileSync(strippedPath)));
  const nowMs = Date.now();
  profile.mappings.push({ ...emptyMapping(), filename: 'demo', fileId, gnuBuildId });
  profile.processes.push({ ...emptyProcess(), pid: 7, executableName: 'demo' });
  profile.type = cpuType(50_000_000n);
  const location = (name: string): number =>
    profile.locations.push({ mapping: 1, address: addresses.get(name)!, frameType: 'native', lines: [] }) - 1;
  const [main, outer, inner, sum] = ['main', 'outer', 'inner', 'sum'].map(location) as [
    number,
    number,
    number,
    number,
  ];
  for (const [leaf, count] of [
    [inner, 5],
    [sum, 3],
  ] as const) {
    const stack = profile.stacks.push(Uint32Array.of(leaf, outer, main)) - 1;
    const timestamps = Array.from({ length: count }, (_, i) => BigInt(nowMs - 1000 + i) * 1_000_000n);
    profile.samples.push({ stack, process: 1, tid: 7, threadName: 'demo', cpu: 0, value: count, timestamps });
  }
  return profile;
}
