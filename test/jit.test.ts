/** Code that a JIT without a plug-in has made, named out of what the JIT wrote of it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../common/base/brand.ts';
import { findPythons } from './runtimes/pythons.ts';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';
import { Recording, type Stack, total } from './support/recording.ts';

const SAMPLES = 30;

/** Frames of memory without a file, leaf first; undefined where the stack was sampled outside, or is not whole. */
const jitFrames = ({ frames }: Stack): string | undefined => {
  const end = frames.indexOf('main');
  return end > 0 && frames.at(-1) === '_start' && frames[end - 1]!.includes('outer')
    ? frames.slice(0, end).join(' ')
    : undefined;
};

describe.skipIf(missingRights)('JIT code', () => {
  let recording: Recording;
  let jit: string;
  const running: ChildProcess[] = [];

  /** Sampled from its start on, it and its children and nothing else; at the lowest priority, since it spins. */
  function started(...command: string[]): ChildProcess {
    const script = 'read _ && exec nice -n 19 "$@"';
    const child = spawn('sh', ['-c', script, 'sh', ...command], { stdio: ['pipe', 'ignore', 'inherit'] });
    running.push(child);
    recording.controller.addTarget(toPid(child.pid!));
    child.stdin!.write('\n');
    return child;
  }

  beforeAll(async () => {
    jit = compile('jit', 'gcc', ['-O2'], 'jit.c');
    recording = await Recording.start({ targets: [] });
  });

  // else the last test's program has an eighth of what its niceness leaves on a busy machine
  afterEach(() => {
    for (const child of running.splice(0)) {
      child.kill('SIGKILL');
      rmSync(`/tmp/perf-${child.pid}.map`, { force: true });
    }
  });
  afterAll(() => recording?.stop());

  const stacks = (child: ChildProcess): Stack[] => recording.stacks(child.pid);
  /** Waits until enough samples of the process fulfil the predicate. */
  const until = (child: ChildProcess, isWanted: (stack: Stack) => boolean): Promise<void> =>
    recording.until(() => total(stacks(child).filter(isWanted)) >= SAMPLES);
  const counters = (): Record<string, number> => recording.controller.counters();

  it('has the names of the perf map of its own process, as they come', async () => {
    const [one, two] = [started(jit, 'map', 'one:'), started(jit, 'map', 'two:')];
    // that of spin is not written yet: its address is all that is known
    await until(one, (stack) => /^\[anon\]\+0x2000001.. one:outer$/.test(jitFrames(stack) ?? ''));
    for (const child of [one, two]) child.stdin!.write('\n');
    await until(one, (stack) => jitFrames(stack) === 'one:spin one:outer');
    await until(two, (stack) => jitFrames(stack) === 'two:spin two:outer');
    const names = (child: ChildProcess) => new Set(stacks(child).flatMap(({ frames }) => frames));
    expect([...names(one)].filter((name) => name.startsWith('two:'))).toEqual([]);
    expect([...names(two)].filter((name) => name.startsWith('one:'))).toEqual([]);
  });

  it.each(['memfd', 'shared'])('has names in shared memory, too: %s', async (memory) => {
    const child = started(jit, 'map', 'its:', memory);
    child.stdin!.write('\n');
    await until(child, (stack) => jitFrames(stack) === 'its:spin its:outer');
  });

  it('has names and lines of a jitdump, also after it moved', async () => {
    const folder = join(scratchFolder, 'dump');
    mkdirSync(folder, { recursive: true });
    const child = started(jit, 'dump', folder);
    await until(child, (stack) => jitFrames(stack) === 'jit::spin() outer');
    child.stdin!.write('\n');
    recording.clear();
    await until(child, (stack) => jitFrames(stack) === 'jit::spin() outer');
    const profile = recording.profiles.at(-1)!;
    const spin = profile.functions.findIndex(({ name }) => name === 'jit::spin()');
    expect(profile.functions[spin]).toMatchObject({ systemName: '_ZN3jit4spinEv', filename: '/spin.src' });
    const places = profile.locations.filter(({ lines }) => lines[0]?.func === spin);
    expect(places.map(({ lines }) => lines[0]!.line)).toContain(42);
    expect(places.map(({ mapping }) => profile.mappings[mapping]!.filename)).toContain('[jit]');
  });

  it('has the names that its process lists for debuggers', async () => {
    const flags = ['-c', '-O2', '-fno-omit-frame-pointer', '-mno-omit-leaf-frame-pointer'];
    const object = compile('registered-leaf.o', 'gcc', flags, 'registered-leaf.c');
    // stripped, as LLVM in libraries is
    const child = started(compile('registered', 'gcc', ['-O2', '-s'], 'registered.c'), object);
    await until(child, ({ frames }) => frames[0] === 'registered_leaf' && frames.length > 3);
    expect(counters()['jit.registered']).toBe(1);
  });

  it('has no names of a map that another user wrote', async () => {
    const refused = counters()['jit.notOwned']!;
    const child = started(jit, 'silent');
    const path = `/tmp/perf-${child.pid}.map`;
    writeFileSync(path, '200000000 1000 false\n');
    chownSync(path, 65534, 65534);
    await until(child, ({ frames }) => frames[0]?.startsWith('[anon]+0x2') ?? false);
    await recording.until(() => counters()['jit.notOwned']! > refused);
    expect(stacks(child).filter(({ frames }) => frames.includes('false'))).toEqual([]);
  });

  it('has names inside a container: its own root and its own PIDs', async ({ skip }) => {
    const folder = join(scratchFolder, 'container');
    mkdirSync(folder, { recursive: true });
    copyFileSync(jit, join(folder, 'jit'));
    const script = `mount --bind ${folder} /tmp && exec /tmp/jit map inside:`;
    const unshare = ['-m', '-p', '-f', '--kill-child', 'sh', '-c', script];
    try {
      execFileSync('unshare', ['-m', '-p', '-f', 'true'], { stdio: 'ignore' });
    } catch {
      skip('no right to make namespaces');
    }
    const child = started('unshare', ...unshare);
    child.stdin!.write('\n');
    // unshare itself is its child's parent
    await recording.until((all) => all.some((stack) => jitFrames(stack) === 'inside:spin inside:outer'));
    expect(readdirSync(folder)).toContain('perf-1.map');
  });

  it('has the names that CPython gives its trampolines', async ({ skip }) => {
    const python = hasTool('chroot') ? findPythons().find(({ minor }) => minor >= 12) : undefined;
    if (!python) skip('no Python of 3.12 or later');
    const script = join(scratchFolder, 'spin.py');
    writeFileSync(script, 'def leaf():\n  x = 0\n  while True: x += 1\ndef caller(): leaf()\ncaller()\n');
    const child = started(...python!.command, '-X', 'perf', python!.place(script));
    const isWhole = ({ frames }: Stack): boolean => {
      const names = frames.filter((name) => name.startsWith('py::')).map((name) => name.split(':')[2]);
      return names.join(' ') === 'leaf caller <module>';
    };
    await until(child, isWhole);
  });
});
