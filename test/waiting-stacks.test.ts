/** Threads that wait already, and long waits that chance has left out: their stacks are taken while they wait. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { readProfiles } from '../common/profile/formats/formats.ts';
import { stackNames } from '../common/profile/model/frame-name.ts';
import type { Profile } from '../common/profile/model/profile.ts';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');

interface Hung {
  tool: string;
  file: string;
  text: string;
  /** Functions from the root to the leaf, one below the other or with others between. */
  chain: string[];
  /** Threads that wait by then. */
  threads: number;
}

const HUNG: Hung[] = [
  {
    ...{ tool: 'python3', file: 'hung.py', threads: 3, chain: ['first', 'take_b'] },
    text: `
import threading, time
a, b = threading.Lock(), threading.Lock()
def take_a():
    with a: pass
def take_b():
    with b: pass
def first():
    with a:
        time.sleep(0.1)
        take_b()
def second():
    with b:
        time.sleep(0.1)
        take_a()
threads = [threading.Thread(target=f) for f in (first, second)]
[t.start() for t in threads]
[t.join() for t in threads]
`,
  },
  {
    ...{ tool: 'node', file: 'hung.cjs', threads: 1, chain: ['outer', 'waitForNobody'] },
    text: `
function waitForNobody() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }
function outer() { waitForNobody(); }
outer();
`,
  },
  {
    ...{ tool: 'ruby', file: 'hung.rb', threads: 1, chain: ['outer', 'inner'] },
    text: 'def inner = IO.pipe[0].read\ndef outer = inner\nouter\n',
  },
  {
    ...{ tool: 'perl', file: 'hung.pl', threads: 1, chain: ['main::outer', 'main::inner'] },
    text: 'sub inner { sleep 600 } sub outer { inner() } outer();\n',
  },
  {
    ...{ tool: 'php', file: 'hung.php', threads: 1, chain: ['outer', 'inner'] },
    text: '<?php function inner() { sleep(600); } function outer() { inner(); } outer();\n',
  },
];
const LOCKED_AND_ASLEEP = `
import threading, time
lock = threading.Lock()
lock.acquire()
def locked(): lock.acquire()
def asleep(): time.sleep(600)
threading.Thread(target=locked).start()
asleep()
`;
const installed = HUNG.filter(({ tool }) => hasTool(tool));
for (const { tool } of HUNG) if (!hasTool(tool)) console.log(`skipped: ${tool} is not installed`);

/** Of that type, as it was recorded for so long. */
function record(pid: number, seconds: number, flags = ['--off-cpu']): readonly Profile[] {
  const file = join(scratchFolder, `${pid}.pb.gz`);
  execFileSync(
    EVERYFRAME,
    ['record', ...flags, '-p', String(pid), '-d', `${seconds}s`, '--force', '-o', file],
    { stdio: 'ignore', timeout: 60_000 },
  );
  return readProfiles(file, readFileSync(file)).profiles;
}

const ofType = (profiles: readonly Profile[], name: string): Profile =>
  profiles.find(({ type }) => type.sampleType.type === name)!;

const sumOf = ({ samples }: Profile): number => samples.reduce((total, { value }) => total + value, 0);

/** Seconds that stacks stand for which have these functions, in that order. */
function waited(profile: Profile, chain: readonly string[]): number {
  const has = (names: readonly string[]): boolean => {
    let from = 0;
    return chain.every((name) => {
      const at = names.indexOf(name, from);
      from = at + 1;
      return at >= 0;
    });
  };
  const samples = profile.samples.filter(({ stack }) => has(stackNames(profile, stack)));
  return samples.reduce((total, { value }) => total + value, 0) / 1e9;
}

/** How many threads of the process have gone to sleep, and stayed there since the last look. */
function sleeping(pid: number, before: Map<string, string>): number {
  let asleep = 0;
  for (const tid of readdirSync(`/proc/${pid}/task`)) {
    const state = readFileSync(`/proc/${pid}/task/${tid}/stat`, 'utf8').split(') ')[1]![0]!;
    const switches = readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8');
    if (state === 'S' && before.get(tid) === switches) asleep++;
    before.set(tid, switches);
  }
  return asleep;
}

/** Resolves once all threads of the program wait. */
async function hangs(program: ChildProcess, threads: number): Promise<void> {
  const before = new Map<string, string>();
  let same = 0;
  const look = (): void => {
    const all = readdirSync(`/proc/${program.pid}/task`).length;
    same = all >= threads && sleeping(program.pid!, before) === all ? same + 1 : 0;
    expect(same).toBeGreaterThan(5);
  };
  await vi.waitFor(look, { timeout: 20_000, interval: 100 });
}

describe.skipIf(missingRights)('threads that wait already', () => {
  it.each(installed)(
    '$tool: the stacks of a program that hangs',
    async ({ tool, file, text, chain, threads }) => {
      const path = join(scratchFolder, file);
      writeFileSync(path, text);
      const program = spawn(tool, [path], { stdio: 'ignore' });
      try {
        await hangs(program, threads);
        const profiles = record(program.pid!, 2);
        const waits = ofType(profiles, 'off_cpu');
        const exact = sumOf(ofType(profiles, 'thread_time'));
        expect(waited(waits, chain)).toBeGreaterThan(1.8);
        expect(sumOf(waits) / exact).toBeGreaterThan(0.95);
        expect(sumOf(waits) / exact).toBeLessThan(1.05);
      } finally {
        program.kill('SIGKILL');
      }
    },
  );

  it.skipIf(!hasTool('python3'))('with --event lock, those of waits for locks alone', async () => {
    const path = join(scratchFolder, 'lock.py');
    writeFileSync(path, LOCKED_AND_ASLEEP);
    const program = spawn('python3', [path], { stdio: 'ignore' });
    try {
      await hangs(program, 2);
      const locks = ofType(record(program.pid!, 2, ['--event', 'lock']), 'lock');
      expect(waited(locks, ['locked'])).toBeGreaterThan(1.8);
      expect(waited(locks, ['asleep'])).toBe(0);
    } finally {
      program.kill('SIGKILL');
    }
  });

  it('a long wait of a thread that usually waits for microseconds', async () => {
    const executable = compile('seldom', 'gcc', ['-O1', '-g', '-pthread'], 'waits/seldom.c');
    const program = spawn(executable, ['60'], { stdio: 'ignore' });
    try {
      const waits = ofType(record(program.pid!, 6, ['--off-cpu', '--off-cpu-budget', '1']), 'off_cpu');
      // 24 s; of those that begin meanwhile chance has the first second or two, and often gives them nothing
      expect(waited(waits, ['long_wait'])).toBeGreaterThan(10);
    } finally {
      program.kill('SIGKILL');
    }
  });
});
