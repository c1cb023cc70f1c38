/** The oldest and the newest kernel of the matrix, and the table that holds what each program may cost. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  buildInitramfs,
  checkKernel,
  describe as describeVerdict,
  fetchKernel,
  knownFigures,
  missingTools,
  type Suite,
} from './matrix.ts';
import { findGrowth, type KernelFigures, kernelOf, parseTable, updateTable } from './ratchet.ts';

/** A minute where nothing else runs, but a busy machine may take many times that: see virtual-machine.ts. */
const BOOT_LIMIT_MS = 1_200_000;

/** Shown even where the test passes: the figures are there to be seen. */
const print = (text: string): void => void process.stdout.write(`${text}\n`);

const missing = missingTools('amd64');
if (missing.length > 0) print(`skipped: other kernels, not installed: ${missing.join(', ')}`);

describe.skipIf(missing.length > 0)('the product in another kernel', () => {
  let initramfs = '';
  beforeAll(() => {
    initramfs = buildInitramfs('amd64');
  });

  /** Skips where the mirror can't be reached. */
  async function check(
    suite: Suite,
    how: { programsOnly: boolean; isLockedDown?: boolean },
    skip: () => void,
  ): Promise<void> {
    let kernel = '';
    try {
      kernel = fetchKernel(suite, 'amd64');
    } catch (error) {
      print(`skipped: ${(error as Error).message}`);
      skip();
    }
    const known = knownFigures();
    const verdict = await checkKernel({
      architecture: 'amd64',
      kernel,
      initramfs,
      ...how,
      cpus: 1,
      limitMs: BOOT_LIMIT_MS,
      known,
    });
    print(describeVerdict(verdict));
    expect(verdict.problems.join('\n')).toBe('');
  }

  const timeout = BOOT_LIMIT_MS + 300_000;
  // two at a time: an emulated machine is one thread
  describe('the oldest and the newest', () => {
    it.concurrent.for(['bullseye', 'sid'] as const)("Debian's %s", { timeout }, (suite, { skip }) =>
      check(suite, { programsOnly: false }, skip),
    );
  });
  describe('those between, which have code paths of their own', () => {
    it.concurrent.for(['jammy', 'bookworm'] as const)(
      'the BPF programs in the kernel of %s',
      { timeout },
      (suite, { skip }) => check(suite, { programsOnly: true }, skip),
    );
    it.concurrent('the BPF programs in the kernel of trixie, locked down', { timeout }, ({ skip }) =>
      check('trixie', { programsOnly: true, isLockedDown: true }, skip),
    );
  });
});

describe('the table of what the verifier walked through', () => {
  const row = (kernel: string, program: string, verified: number): KernelFigures => ({
    kernel,
    program,
    verified,
    loadMs: 1.5,
  });
  const page = [
    'Words.',
    '',
    '| kernel | program | instructions verified | ms |',
    '|---|---|--:|--:|',
    '| 5.10 | `sample` | 82,043 | 387.7 |',
    '| 6.1 | `sample` | 90,000 | 1.0 |',
    '',
    'More words.',
  ].join('\n');

  it('is read and written back as it was', () => {
    expect(parseTable(page)).toEqual([
      { kernel: '5.10', program: 'sample', verified: 82_043, loadMs: 387.7 },
      { kernel: '6.1', program: 'sample', verified: 90_000, loadMs: 1 },
    ]);
    expect(updateTable(page, parseTable(page)).split('\n').sort()).toEqual(page.split('\n').sort());
  });

  it('is updated for the kernels that were measured, in the order of their versions', () => {
    const updated = updateTable(page, [
      row('5.10', 'sample', 7),
      row('5.10', 'on_exit', 3),
      row('7.2', 'sample', 1234),
    ]);
    expect(parseTable(updated).map((r) => [r.kernel, r.program, r.verified])).toEqual([
      ['5.10', 'sample', 7],
      ['5.10', 'on_exit', 3],
      ['6.1', 'sample', 90_000],
      ['7.2', 'sample', 1234],
    ]);
    expect(updated.startsWith('Words.') && updated.endsWith('More words.')).toBe(true);
  });

  it('tells the kernels of arm64 from those of amd64', () => {
    expect(['5.10.0-39-cloud-amd64', '5.10.0-39-cloud-arm64'].map(kernelOf)).toEqual(['5.10', '5.10 arm64']);
    const updated = updateTable(page, [row('5.10 arm64', 'sample', 7)]);
    expect(parseTable(updated).map((r) => [r.kernel, r.verified])).toEqual([
      ['5.10', 82_043],
      ['5.10 arm64', 7],
      ['6.1', 90_000],
    ]);
  });

  it('allows a tenth more, and says what grew beyond', () => {
    const known = parseTable(page);
    expect(findGrowth(known, [row('5.10', 'sample', 90_000)])).toEqual([]);
    expect(findGrowth(known, [row('5.10', 'sample', 91_000)])).toEqual([
      expect.stringContaining(
        'sample: the verifier of Linux 5.10 walked through 91000 instructions, 82043 before',
      ),
    ]);
    expect(findGrowth(known, [row('9.9', 'sample', 999_999), row('6.1', 'new', 999_999)])).toEqual([]);
  });
});
