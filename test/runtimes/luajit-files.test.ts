/** Debian's LuaJIT for both processors: what is found in its files, on a machine of any. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { detectLuajit } from '../../agent/interpreters/luajit/detect-luajit.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { isWholeMatrix } from './package-roots.ts';

const FETCH = join(import.meta.dirname, '../kernels/fetch-packages.sh');
const PACKAGES = ['luajit', 'libluajit-5.1-2'];
const LIMIT_MS = 240_000;
const TRIPLETS = { amd64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' } as const;
/** jit_base, and the table of traces; those of amd64 are held to live processes by luajit.test.ts. */
const CASES = [
  ['bullseye', 'arm64', 0x168, 0x410],
  ['bookworm', 'arm64', 0x178, 0x440],
  ['trixie', 'arm64', 0x178, 0x450],
  ['sid', 'arm64', 0x178, 0x450],
  ['bullseye', 'amd64', 0xfc, 0x310],
  ['bookworm', 'amd64', 0x178, 0x458],
  ['trixie', 'amd64', 0x178, 0x468],
  ['sid', 'amd64', 0x178, 0x468],
] as const;

if (!isWholeMatrix)
  console.log('skipped: packages of other suites are downloaded by npm run test:runtimes alone');

describe.skipIf(!isWholeMatrix)('LuaJIT', () => {
  it.for(CASES)('of %s for %s', { timeout: LIMIT_MS }, ([suite, processor, jitBase, traces], { skip }) => {
    const { status, stdout, stderr } = spawnSync(FETCH, [suite, processor, ...PACKAGES], {
      encoding: 'utf8',
    });
    if (status !== 0) skip(`can't be downloaded: ${stderr.trim().split('\n').at(-1)}`);
    const libraries = join(stdout.trim(), 'usr/lib', TRIPLETS[processor]);
    const library = readdirSync(libraries).find((name) => name.startsWith('libluajit-5.1.so.2.'))!;
    for (const path of [join(stdout.trim(), 'usr/bin/luajit'), join(libraries, library)]) {
      const found = detectLuajit(parseElf(bufferSource(readFileSync(path))))!;
      const isGc64 = suite !== 'bullseye' || processor === 'arm64';
      expect(found.version).toMatch(/^2\.1\./);
      expect(found.code).toMatchObject({ isGc64, jitBase, traces, traceCode: isGc64 ? 0x58 : 0x40 });
      expect(found.vm.end - found.vm.start).toBeGreaterThan(14_000);
    }
  });
});
