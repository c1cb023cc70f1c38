/** Debian's Perl for arm64: what is found in its files, on a machine of any processor. It runs in test/kernels. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { detectPerl } from '../../agent/interpreters/perl/detect-perl.ts';
import { layoutOf } from '../../agent/interpreters/perl/layout.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { isWholeMatrix } from './package-roots.ts';

const FETCH = join(import.meta.dirname, '../kernels/fetch-packages.sh');
const LIBRARIES = 'usr/lib/aarch64-linux-gnu';
const LIMIT_MS = 240_000;
const SUITES = [
  ['bullseye', '5.32'],
  ['bookworm', '5.36'],
  ['trixie', '5.40'],
  ['sid', '5.42'],
] as const;
/** Functions of which a native frame says something: each is there and is not an empty one. */
const FUNCTIONS = 7;

if (!isWholeMatrix) console.log('skipped: packages for arm64 are downloaded by npm run test:runtimes alone');

describe.skipIf(!isWholeMatrix)('Perl for arm64', () => {
  it.for(SUITES)('of %s', { timeout: LIMIT_MS }, ([suite, version], { skip }) => {
    const packages = ['perl-base', `libperl${version}`];
    const { status, stdout, stderr } = spawnSync(FETCH, [suite, 'arm64', ...packages], { encoding: 'utf8' });
    if (status !== 0) skip(`can't be downloaded: ${stderr.trim().split('\n').at(-1)}`);
    const root = stdout.trim();
    const library = readdirSync(join(root, LIBRARIES)).find((name) =>
      name.startsWith(`libperl.so.${version}.`),
    )!;
    for (const path of ['usr/bin/perl', join(LIBRARIES, library)]) {
      const found = detectPerl(parseElf(bufferSource(readFileSync(join(root, path)))))!;
      expect(found).toMatchObject({ access: { kind: 'key' }, hasThreads: true, isMusl: false });
      expect(found.version.startsWith(`${version}.`)).toBe(true);
      expect(found.layout).toEqual(layoutOf(Number(version.split('.')[1])));
      expect(found.functions.filter((symbol) => symbol !== undefined && symbol.size > 0)).toHaveLength(
        FUNCTIONS,
      );
    }
  });
});
