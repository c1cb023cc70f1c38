/**
 * `node dist/test/bench/stack-deltas.js [--peer PROGRAM] [--rounds 5] [ELF…]`: time, peak memory and size of an
 * executable's table, ours and that of the reference's extractor, alternating, each in a process of its own. Ours makes
 * the table as the kernel gets it; the reference prints its deltas as text, which it has no option to leave out.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fdSource } from '../../agent/files/fd-source.ts';
import { buildTable } from '../../agent/stack-deltas/table/build-table.ts';

interface Run {
  ms: number;
  peakMib: number;
}

const LIBLLVM = '/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1';
const SELF = fileURLToPath(import.meta.url);

const { values, positionals } = parseArgs({
  options: { peer: { type: 'string' }, rounds: { type: 'string', default: '5' }, one: { type: 'boolean' } },
  allowPositionals: true,
});

function buildOnce(path: string): void {
  const fd = openSync(path, 'r');
  try {
    const result = buildTable(fdSource(fd));
    if (result.kind !== 'built') throw new Error(`${path}: ${result.reason}`);
    console.log(result.executable.table?.image.length ?? 0);
  } finally {
    closeSync(fd);
  }
}

/** GNU time's last line has what the process took. */
function run(command: string, args: readonly string[]): Run & { output: string } {
  const { status, stdout, stderr } = spawnSync('/usr/bin/time', ['-f', '%U %S %M', command, ...args], {
    encoding: 'latin1',
    maxBuffer: 1 << 30,
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr}`);
  const [user, system, kib] = stderr.trimEnd().split('\n').at(-1)!.split(' ').map(Number);
  return { ms: (user! + system!) * 1000, peakMib: kib! / 1024, output: stdout };
}

const median = (numbers: number[]): number => numbers.sort((a, b) => a - b)[numbers.length >> 1]!;

function describe(runs: readonly Run[]): string {
  const ms = median(runs.map((r) => r.ms));
  return `${ms.toFixed(0)} ms of CPU, peak ${median(runs.map((r) => r.peakMib)).toFixed(0)} MiB`;
}

function compare(path: string, rounds: number): void {
  const [ours, theirs]: [Run[], Run[]] = [[], []];
  let bytes = 0;
  for (let round = 0; round < rounds; round++) {
    const mine = run(process.execPath, [SELF, '--one', path]);
    bytes = Number(mine.output);
    ours.push(mine);
    if (values.peer) theirs.push(run(values.peer, ['-target', path]));
  }
  console.log(`${path}\n  everyframe: ${describe(ours)}, table ${(bytes / 2 ** 20).toFixed(2)} MiB`);
  if (!values.peer) return;
  const ratio = median(ours.map((r) => r.ms)) / median(theirs.map((r) => r.ms));
  console.log(`  reference:  ${describe(theirs)}\n  ratio of CPU: ${ratio.toFixed(2)}`);
}

if (values.one) buildOnce(positionals[0]!);
else {
  const files = positionals.length > 0 ? positionals : [process.execPath, LIBLLVM];
  for (const path of files.filter((file) => existsSync(file))) compare(path, Number(values.rounds));
}
