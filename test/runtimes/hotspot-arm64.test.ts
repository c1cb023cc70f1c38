/** Debian's Java for arm64: what is found in its files, on a machine of any processor. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { detectHotspot, TABLE_SYMBOLS } from '../../agent/interpreters/hotspot/detect-hotspot.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { isWholeMatrix } from './package-roots.ts';

const FETCH = join(import.meta.dirname, '../kernels/fetch-packages.sh');
const LIMIT_MS = 240_000;
const SUITES = [
  ['bullseye', 11],
  ['bullseye', 17],
  ['bookworm', 17],
  ['trixie', 21],
  ['trixie', 25],
  ...[8, 11, 17, 21, 25, 26, 27, 28].map((major) => ['sid', major] as const),
] as const;

if (!isWholeMatrix) console.log('skipped: packages for arm64 are downloaded by npm run test:runtimes alone');

describe.skipIf(!isWholeMatrix)('Java for arm64', () => {
  it.for(SUITES)('of %s: %i', { timeout: LIMIT_MS }, ([suite, major], { skip }) => {
    const { status, stdout, stderr } = spawnSync(FETCH, [suite, 'arm64', `openjdk-${major}-jre-headless`], {
      encoding: 'utf8',
    });
    if (status !== 0) skip(`can't be downloaded: ${stderr.trim().split('\n').at(-1)}`);
    const home = `usr/lib/jvm/java-${major}-openjdk-arm64`;
    const library = major === 8 ? 'jre/lib/aarch64/server/libjvm.so' : 'lib/server/libjvm.so';
    const elf = parseElf(bufferSource(readFileSync(join(stdout.trim(), home, library))));
    const found = detectHotspot(elf)!;
    expect(found).toMatchObject({ major, machine: 'aarch64' });
    expect(found.version.startsWith(`${major}.`)).toBe(true);
    // each of the variables that lead to the tables lies in data of the file
    const data = elf.segments.filter(({ type, flags }) => type === 1 && (flags & 1) === 0);
    const text = elf.segments.find(({ type, flags }) => type === 1 && (flags & 1) !== 0)!;
    for (const key of Object.keys(TABLE_SYMBOLS) as (keyof typeof TABLE_SYMBOLS)[]) {
      const address = found.symbols[key] + text.vaddr - text.offset;
      expect(data.some(({ vaddr, memsz }) => address >= vaddr && address + 8 <= vaddr + memsz)).toBe(true);
    }
  });
});
