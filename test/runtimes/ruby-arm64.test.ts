/** Debian's Ruby for arm64: what is found in its files, on a machine of any processor. It runs in test/arm64. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { detectRuby } from '../../agent/interpreters/ruby/detect-ruby.ts';
import { sizeOf } from '../../agent/interpreters/ruby/machine-code.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { isWholeMatrix } from './package-roots.ts';

const FETCH = join(import.meta.dirname, '../kernels/fetch-packages.sh');
const LIBRARIES = 'usr/lib/aarch64-linux-gnu';
const LIMIT_MS = 240_000;
/** What runs instructions has some 20 KiB. */
const MIN_CORE = 16 << 10;
const SUITES = [
  ['bullseye', '2.7', 'global', 1176],
  ['bookworm', '3.1', 'descriptor', 1128],
  ['trixie', '3.3', 'descriptor', 1328],
  ['sid', '3.3', 'descriptor', 1328],
] as const;

if (!isWholeMatrix) console.log('skipped: packages for arm64 are downloaded by npm run test:runtimes alone');

describe.skipIf(!isWholeMatrix)('Ruby for arm64', () => {
  it.for(SUITES)('of %s', { timeout: LIMIT_MS }, ([suite, version, kind, space], { skip }) => {
    const { status, stdout, stderr } = spawnSync(FETCH, [suite, 'arm64', `libruby${version}`], {
      encoding: 'utf8',
    });
    if (status !== 0) skip(`can't be downloaded: ${stderr.trim().split('\n').at(-1)}`);
    const folder = join(stdout.trim(), LIBRARIES);
    const library = readdirSync(folder).find((name) => name.startsWith(`libruby-${version}.so.${version}.`))!;
    const found = detectRuby(parseElf(bufferSource(readFileSync(join(folder, library)))))!;
    expect(found.version.startsWith(`${version}.`)).toBe(true);
    expect(found).toMatchObject({ access: { kind }, collector: { space, flags: 16 }, isMusl: false });
    expect(sizeOf(found.core!)).toBeGreaterThan(MIN_CORE);
    expect(found.symbols).toBeGreaterThan(found.loop.end);
  });
});
