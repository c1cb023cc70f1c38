/**
 * `npm run test:symbols [-- --addresses N] [--no-cost | --cost-only]`: names and lines of programs in C, C++, Rust and
 * Go, optimised at link time and with split DWARF, against binutils, LLVM and Go; demangled names against c++filt and rustfilt; what
 * it costs. Writes docs/symbolizer.md, unless N is not the default; fails where a difference has no explanation.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { sampleAddresses } from '../bench/compare-symbols.ts';
import { compareProgram, EXPLANATIONS, type Row } from './explain-symbols.ts';
import { type Cost, costOf, costOfNode, NAMERS, type Namer } from './symbol-cost.ts';
import { compareDemangled, compareNm, type NameRow } from './symbol-names.ts';
import { buildPrograms, type Program, versionOf } from './symbol-programs.ts';

const ADDRESSES = 10_000;
const MAX_SHOWN = 10;
const RUNS = 3;
const PAGE = new URL('../../../docs/symbolizer.md', import.meta.url);
const COST_HEAD = '## Cost';

const { values } = parseArgs({
  options: {
    addresses: { type: 'string', default: `${ADDRESSES}` },
    cost: { type: 'boolean', default: true },
    'cost-only': { type: 'boolean', default: false },
  },
  allowNegative: true,
});
const count = Number(values.addresses);
const has = (command: string): boolean => spawnSync(command, ['--version']).error === undefined;
const grouped = (n: number): string => n.toLocaleString('en-US');
const table = (heads: string[], rows: string[][]): string => {
  const rule = heads.map((_, i) => (i === 0 ? '---' : '--:'));
  return [heads, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
};

const unexplained: string[] = [];
function note(what: string, differences: readonly string[]): void {
  for (const difference of differences.slice(0, MAX_SHOWN)) unexplained.push(`${what}: ${difference}`);
}

async function comparePrograms(programs: readonly Program[]): Promise<string> {
  const whys = Object.keys(EXPLANATIONS) as (keyof typeof EXPLANATIONS)[];
  const rows: string[][] = [];
  for (const { title, path, oracles } of programs) {
    const addresses = sampleAddresses(path, count).slice(0, count);
    for (const oracle of oracles) {
      const row: Row = await compareProgram(oracle, path, addresses);
      console.error(
        `${title}, ${oracle}: ${row.same} of ${row.addresses} same, ${row.unexplained.length} open`,
      );
      note(`${title}, ${oracle}`, row.unexplained);
      const explained = whys.map((why) => grouped(row.explained.get(why) ?? 0));
      rows.push([
        title,
        oracle,
        ...[row.addresses, row.same].map(grouped),
        ...explained,
        `${row.unexplained.length}`,
      ]);
    }
  }
  return table(['program', 'oracle', 'addresses', 'same', ...whys, 'unexplained'], rows);
}

async function compareNames(programs: readonly Program[]): Promise<string> {
  const rows: string[][] = [];
  const add = (title: string, tool: string, { names, differences }: NameRow): void => {
    note(`${title}, ${tool}`, differences);
    rows.push([title, tool, grouped(names), `${differences.length}`]);
  };
  for (const { title, path } of programs) {
    if (basename(path) !== 'gobin') add(title, 'nm -S', await compareNm(path));
  }
  const files = programs.filter(({ path }) => ['cxx', 'rust'].includes(basename(path)));
  const libraries = ['libstdc++.so.6', 'libLLVM-14.so.1'].map((name) => `/usr/lib/x86_64-linux-gnu/${name}`);
  for (const path of [...files.map((one) => one.path), ...libraries].filter((path) => existsSync(path))) {
    const isRust = basename(path) === 'rust';
    if (isRust && !has('rustfilt')) console.error('left out: rustfilt is not installed');
    else if (isRust)
      add(basename(path), 'rustfilt', compareDemangled('rustfilt', path, /^_R|^_ZN.*17h[0-9a-f]{16}E/));
    else add(basename(path), 'c++filt -i', compareDemangled('c++filt', path, /^_Z/));
  }
  return table(['names of', 'oracle', 'names', 'differences'], rows);
}

function measureCosts(programs: readonly Program[]): string {
  const rows: string[][] = [];
  const namers = NAMERS.filter((namer) => namer === 'everyframe' || has(namer));
  const cells = ({ seconds, cpuSeconds, mebibytes }: Cost, reference?: Cost): string[] => [
    `${Math.round(seconds * 1000)} ms`,
    `${Math.round(cpuSeconds * 1000)} ms`,
    reference ? `${(cpuSeconds / reference.cpuSeconds).toFixed(1)}` : '',
    `${Math.round(mebibytes)} MiB`,
  ];
  for (const { title, path } of programs.filter(({ oracles }) => oracles.length === 2)) {
    const addresses = sampleAddresses(path, count).slice(0, count);
    for (const many of [addresses.slice(count / 2, count / 2 + 1), addresses]) {
      const size = `${(statSync(path).size / 2 ** 20).toFixed(1)} MiB`;
      const costs = namers.map((namer: Namer) => costOf(namer, path, many, RUNS));
      const reference = costs[namers.indexOf('addr2line')];
      for (const [i, namer] of namers.entries())
        rows.push([`${title}, ${size}`, grouped(many.length), namer, ...cells(costs[i]!, reference)]);
      console.error(`${title}: cost of ${grouped(many.length)}`);
    }
  }
  rows.push(['no file', '0', 'Node alone', ...cells(costOfNode())]);
  return table(['file', 'addresses', 'tool', 'time', 'CPU time', '× addr2line', 'peak memory'], rows);
}

const programs = buildPrograms();
const versions = [
  versionOf('addr2line', '--version'),
  versionOf('llvm-symbolizer', '--version'),
  versionOf('gcc', '--version'),
  versionOf('clang', '--version'),
  ...(has('rustc') ? [versionOf('rustc', '--version')] : []),
  ...(has('go') ? [versionOf('go', 'version')] : []),
];
const costs = (): string =>
  `${COST_HEAD}\n\nFresh processes that read the file, and name one address or all of them with inlined calls, lines and demangled names: of three runs the one that took least CPU time, which says more than time where the machine is shared. everyframe’s figures contain the start of Node (last row).\n\n${measureCosts(programs)}`;

if (values['cost-only']) {
  const page = readFileSync(PAGE, 'utf8');
  writeFileSync(PAGE, `${page.slice(0, page.indexOf(COST_HEAD))}${costs()}\n`);
  process.exit();
}

const parts = [
  '# Names and lines against other tools',
  `Written by \`npm run test:symbols\`. Addresses are spread evenly over the code of each program. \`same\` means: as many levels of inlined calls, and at every level the same function, source file and line. Programs and comparison: \`test/oracle/symbol*.ts\`. Tools: ${versions.join('; ')}.`,
  await comparePrograms(programs),
  'Each difference is of one of these kinds, which the comparison establishes address by address:',
  Object.entries(EXPLANATIONS)
    .map(([why, text]) => `- **${why}**: ${text}.`)
    .join('\n'),
  '## Names\n\nWhat is demangled, against the languages’ own tools; and the outermost name at the first and the last byte of every function that `nm -S` lists.',
  await compareNames(programs),
];
if (values.cost) parts.push(costs());
if (unexplained.length > 0)
  parts.push(`## Unexplained\n\n${unexplained.map((line) => `- ${line}`).join('\n')}`);
const page = `${parts.join('\n\n')}\n`;
console.log(page);
if (count === ADDRESSES && values.cost) writeFileSync(PAGE, page);
if (unexplained.length > 0) process.exitCode = 1;
