/**
 * `node dist/test/bench/many-executables.js [FILES] [SECONDS] [MS] [FLAG…]`: copies of real programs, each a file of its
 * own for the agent, run by turns for some milliseconds of CPU time each. Prints what the agent takes of its
 * `--max-memory` meanwhile, and at the end the largest of it. Needs root.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentProcess } from '../support/agent-process.ts';
import { exitOnSignals, Load, mapsOf, ROOT } from './measure.ts';

interface Program {
  path: string;
  args: string[];
  /** How many of a hundred copies are of it. */
  share: number;
}

/** What they run never ends by itself. Few of the largest, for the sake of the disk. */
function programs(directory: string): Program[] {
  const script = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const ENDLESS_QUERY =
    'with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c';
  return [
    { path: '/usr/bin/bash', args: ['-c', 'while :; do :; done'], share: 15 },
    { path: '/usr/bin/dash', args: ['-c', 'while :; do :; done'], share: 10 },
    { path: '/usr/bin/perl', args: ['-e', 'sub f { $_[0] * 2 } f(3) while 1'], share: 15 },
    { path: '/usr/bin/python3', args: ['-S', '-c', 'while True: sorted(range(9))'], share: 15 },
    { path: '/usr/bin/mawk', args: ['BEGIN { while (1) i++ }'], share: 8 },
    { path: '/usr/bin/sqlite3', args: [':memory:', ENDLESS_QUERY], share: 8 },
    { path: '/usr/bin/openssl', args: ['speed', '-seconds', '1', 'sha256'], share: 8 },
    { path: '/usr/bin/xz', args: ['-9', '-c', '/dev/zero'], share: 5 },
    { path: '/usr/bin/zstd', args: ['-c', '/dev/zero'], share: 5 },
    { path: '/usr/bin/gzip', args: ['-cf', '/dev/zero'], share: 4 },
    {
      path: '/usr/bin/cmake',
      args: ['-P', script('loop.cmake', 'while(TRUE)\n  set(A 1)\nendwhile()\n')],
      share: 3,
    },
    {
      path: '/usr/bin/gdb',
      args: ['-nx', '-batch', '-x', script('loop.gdb', 'while 1\n  set $a = 1\nend\n')],
      share: 3,
    },
    { path: process.execPath, args: ['-e', 'while (true);'], share: 1 },
  ].filter(({ path }) => existsSync(path));
}

/** Copies of the programs, each with another end and so with another file ID; their commands, well mixed. */
export function makeExecutables(directory: string, count: number): string[][] {
  const kinds = programs(directory);
  const cards = kinds.flatMap((program) => Array.from({ length: program.share }, () => program));
  return Array.from({ length: count }, (_, i) => {
    // a step that has no factor in common with the cards visits all of them
    const { path, args } = cards[(i * 37) % cards.length]!;
    const copy = join(directory, `program-${i}`);
    copyFileSync(path, copy);
    appendFileSync(copy, copy);
    return [copy, ...args];
  });
}

const MIB = 2 ** 20;

function usedMiB(agent: AgentProcess): { resident: number; maps: number } {
  const maps = [...mapsOf(agent.pid).values()].reduce((sum, bytes) => sum + bytes, 0);
  return { resident: agent.footprint().residentBytes / MIB, maps: maps / MIB };
}

async function watch(agent: AgentProcess, seconds: number): Promise<void> {
  const begun = performance.now();
  let [most, over, looks] = [0, 0, 0];
  for (let at = 0; at < seconds && !agent.hasEnded; at = (performance.now() - begun) / 1000) {
    await sleep(1000);
    const { resident, maps } = usedMiB(agent);
    most = Math.max(most, resident + maps);
    looks++;
    if (resident + maps > 256) over++;
    if (looks % 5 === 0)
      console.log(
        `${at.toFixed(0)} s: ${resident.toFixed(0)} + ${maps.toFixed(0)} = ${(resident + maps).toFixed(0)} MiB`,
      );
  }
  console.log(`at most ${most.toFixed(0)} MiB, above 256 MiB at ${over} of ${looks} looks`);
}

async function main(files: number, seconds: number, ms: number, flags: string[]): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-executables-'));
  const load = new Load();
  const agent = new AgentProcess('127.0.0.1:1', '--samples-per-second', '97', ...flags);
  process.once('exit', () => {
    if (!agent.hasEnded) process.kill(agent.pid, 'SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });
  try {
    const turns = join(directory, 'turns');
    execFileSync('gcc', ['-O2', '-o', turns, `${ROOT}test/bench/load/turns.c`]);
    const list = join(directory, 'commands');
    const commands = makeExecutables(directory, files);
    writeFileSync(list, `${commands.map((words) => words.join('\t')).join('\n')}\n`);
    load.start(turns, [list, String(ms)]);
    await watch(agent, seconds);
    const counters = await agent.stop();
    for (const [name, value] of Object.entries(counters))
      if (/^(memory|tables|executables|samples|bpf.user|bpf.samples|traceStore|cpu)/.test(name))
        console.log(`  ${name} ${value}`);
  } finally {
    await agent.kill();
    await load.stop();
  }
}

exitOnSignals();
const [files = '1000', seconds = '180', ms = '50', ...flags] = process.argv.slice(2);
await main(Number(files), Number(seconds), Number(ms), flags);
