/**
 * What the verifier of each kernel makes of each program, as a table in docs/kernels.md that is read back: growth
 * beyond a compiler's whim is a failure, since the limit of 1,000,000 instructions ends a kernel's support at once.
 */
import type { ProgramFigures } from '../../agent/tracer/program-figures.ts';

export interface KernelFigures extends ProgramFigures {
  /** Such as "5.10", "5.10 arm64". */
  kernel: string;
}

const TOLERANCE = 0.1;
/** Small programs differ by more with each kernel's prologue. */
const SLACK = 100;
const ROW = /^\| (\d+\.\d+(?: arm64)?) \| `(\S+)` \| ([\d,]+) \| ([\d.]+) \|$/;

export function kernelOf(release: string): string {
  const version = /^\d+\.\d+/.exec(release)?.[0];
  if (!version) return release;
  return release.endsWith('arm64') ? `${version} arm64` : version;
}

export function parseTable(page: string): KernelFigures[] {
  return page.split('\n').flatMap((line) => {
    const [, kernel, program, verified, load] = ROW.exec(line) ?? [];
    if (!kernel) return [];
    return [
      { kernel, program: program!, verified: Number(verified!.replaceAll(',', '')), loadMs: Number(load) },
    ];
  });
}

const formatRow = ({ kernel, program, verified, loadMs }: KernelFigures): string =>
  `| ${kernel} | \`${program}\` | ${verified.toLocaleString('en')} | ${loadMs.toFixed(1)} |`;

const byKernelAndSize = (a: KernelFigures, b: KernelFigures): number =>
  a.kernel.localeCompare(b.kernel, 'en', { numeric: true }) || b.verified - a.verified;

/** The page with the rows of the measured kernels replaced; others stay. */
export function updateTable(page: string, measured: readonly KernelFigures[]): string {
  const kernels = new Set(measured.map(({ kernel }) => kernel));
  const rows = [...parseTable(page).filter(({ kernel }) => !kernels.has(kernel)), ...measured];
  const lines = page.split('\n');
  const head = lines.findIndex((line) => /^\|(?: *:?-+:? *\|)+$/.test(line));
  if (head < 0) throw new Error('docs/kernels.md has no table');
  const rest = lines.slice(head + 1).filter((line) => !ROW.test(line));
  return [...lines.slice(0, head + 1), ...rows.sort(byKernelAndSize).map(formatRow), ...rest].join('\n');
}

/**
 * A sentence for each program that grew. What the table does not hold yet is shown and no more: sid's kernel changes
 * under us, and a new runtime comes with new programs.
 */
export function findGrowth(known: readonly KernelFigures[], measured: readonly KernelFigures[]): string[] {
  return measured.flatMap(({ kernel, program, verified }) => {
    const before = known.find((row) => row.kernel === kernel && row.program === program)?.verified;
    if (before === undefined) return [];
    if (verified <= before * (1 + TOLERANCE) + SLACK) return [];
    return [
      `${program}: the verifier of Linux ${kernel} walked through ${verified} instructions, ${before} before. Make it cheaper (values in map memory rather than registers, loops around global functions), or say in the commit why it grew: "npm run test:kernels -- --update" writes the table`,
    ];
  });
}
