/** Debian's CPython for arm64: what is found in its files, on a machine of any processor. It runs in test/kernels. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { detectPython } from '../../agent/interpreters/python/detect-python.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { isWholeMatrix } from './package-roots.ts';

const FETCH = join(import.meta.dirname, '../kernels/fetch-packages.sh');
const LIBRARIES = 'usr/lib/aarch64-linux-gnu';
const LIMIT_MS = 240_000;

/** The fewest bytes of the loop: a file whose loop stands elsewhere has a kilobyte of it under its name. */
const LOOP_BYTES = 50_000;

const SUITES = [
  { suite: 'bookworm', version: '3.11', program: 'global', library: 'global' },
  { suite: 'trixie', version: '3.13', program: 'offset', library: 'descriptor' },
  { suite: 'sid', version: '3.14', program: 'offset', library: 'descriptor' },
] as const;

if (!isWholeMatrix) console.log('skipped: packages for arm64 are downloaded by npm run test:runtimes alone');

describe.skipIf(!isWholeMatrix)('CPython for arm64', () => {
  it.for(SUITES)(
    '$version of $suite',
    { timeout: LIMIT_MS },
    ({ suite, version, program, library }, { skip }) => {
      const packages = [`python${version}-minimal`, `libpython${version}`];
      const { status, stdout, stderr } = spawnSync(FETCH, [suite, 'arm64', ...packages], {
        encoding: 'utf8',
      });
      if (status !== 0) skip(`can't be downloaded: ${stderr.trim().split('\n').at(-1)}`);
      const root = stdout.trim();
      const name = readdirSync(join(root, LIBRARIES)).find((file) =>
        file.startsWith(`libpython${version}.so.`),
      )!;
      for (const [path, current] of [
        [`usr/bin/python${version}`, program],
        [join(LIBRARIES, name), library],
      ] as const) {
        const found = detectPython(parseElf(bufferSource(readFileSync(join(root, path)))))!;
        expect(found).toMatchObject({ bound: { kind: 'key' }, current: { kind: current } });
        expect(found.version.startsWith(`${version}.`)).toBe(true);
        const bytes = found.evalRanges.reduce((sum, { start, end }) => sum + end - start, 0);
        expect(bytes).toBeGreaterThan(LOOP_BYTES);
      }
    },
  );
});
