/** Debian's Erlang for arm64: what is found in its files, on a machine of any processor. It runs in test/kernels. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { detectBeam } from '../../agent/interpreters/beam/detect-beam.ts';
import { CalleeSaved, RuleKind } from '../../agent/records/records.gen.ts';
import { extractStackDeltas } from '../../agent/stack-deltas/stack-deltas.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { isWholeMatrix } from './package-roots.ts';

const FETCH = join(import.meta.dirname, '../kernels/fetch-packages.sh');
const LIBRARY = 'usr/lib/erlang';
const LIMIT_MS = 240_000;
/** sid's hides nearly all symbols. */
const SUITES = [
  { suite: 'bookworm', version: '25', isOpen: true },
  { suite: 'trixie', version: '27', isOpen: true },
  { suite: 'sid', version: '29', isOpen: false },
] as const;

if (!isWholeMatrix) console.log('skipped: packages for arm64 are downloaded by npm run test:runtimes alone');

function readVm(suite: string): Buffer | string {
  const { status, stdout, stderr } = spawnSync(FETCH, [suite, 'arm64', 'erlang-base'], { encoding: 'utf8' });
  if (status !== 0) return `can't be downloaded: ${stderr.trim().split('\n').at(-1)}`;
  const library = join(stdout.trim(), LIBRARY);
  const folder = readdirSync(library).find((name) => name.startsWith('erts-'))!;
  return readFileSync(join(library, folder, 'bin/beam.smp'));
}

describe.skipIf(!isWholeMatrix)('Erlang for arm64', () => {
  it.for(SUITES)('$version of $suite', { timeout: LIMIT_MS }, ({ suite, version, isOpen }, { skip }) => {
    const bytes = readVm(suite);
    if (typeof bytes === 'string') return skip(bytes);
    const elf = parseElf(bufferSource(bytes));
    const found = detectBeam(elf)!;
    expect(found).toMatchObject({ version, machine: 'aarch64', currentProcess: 0xa8, isMusl: false });
    const isVariable = ({ start, bytes: length }: typeof found.data, address: number): boolean =>
      address > start && address < start + length;
    expect(isVariable(found.data, found.threadKey)).toBe(true);
    expect(found.activeIndex !== 0 && isVariable(found.data, found.activeIndex)).toBe(isOpen);
    expect(found.dirty.bytes > 0).toBe(isOpen);
  });

  it.for(SUITES)(
    '$version of $suite says of nearly all code what becomes of the Erlang stack',
    { timeout: LIMIT_MS },
    ({ suite }, { skip }) => {
      const bytes = readVm(suite);
      if (typeof bytes === 'string') return skip(bytes);
      const { rules, ruleIds } = extractStackDeltas(parseElf(bufferSource(bytes)));
      const rows = [...ruleIds].map((id) => rules[id]!).filter(({ kind }) => kind === RuleKind.CFA);
      const known = rows.filter(({ cfaOffset2 }) => cfaOffset2 !== CalleeSaved.UNKNOWN);
      expect(known.length / rows.length).toBeGreaterThan(0.998);
      expect(known.filter(({ cfaOffset2 }) => cfaOffset2 < 0).length).toBeGreaterThan(1000);
    },
  );
});
