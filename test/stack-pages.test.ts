/** Stacks of which a part is not in memory: completed by the thread itself where the kernel can do that, else cut. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadNative } from '../agent/base/native.ts';
import { toPid } from '../common/base/brand.ts';
import { compile, missingRights, scratchFolder } from './support/fixtures.ts';
import { Recording, type Stack, share, total } from './support/recording.ts';

const SAMPLES = 60;
const DEPTH = 40;
const CUT = '[cut: stack memory not resident]';

function canDefer(): boolean {
  const { taskWork, taskWorkImpl } = loadNative().probeFeatures();
  return taskWork || taskWorkImpl;
}

const depth = ({ frames }: Stack): number => frames.filter((frame) => frame === 'recurse').length;
const isWhole = (stack: Stack): boolean =>
  depth(stack) === DEPTH && !stack.frames.some((f) => /^\[cut/.test(f));

describe.skipIf(missingRights)('stacks of which a part is not in memory', () => {
  const running: ChildProcess[] = [];
  const pids = { shared: 0, file: 0, gone: 0 };
  let recording: Recording | undefined;

  const start = (program: string, ...args: string[]): number => {
    const child = spawn('nice', ['-n', '19', program, ...args], { stdio: 'ignore' });
    running.push(child);
    return child.pid!;
  };
  const atTheBottom = (name: keyof typeof pids): Stack[] =>
    recording!.stacks(pids[name]).filter(({ frames }) => frames.includes('at_bottom'));
  const counter = (name: string): number => recording!.controller.counters()[name] ?? 0;
  const untilSamples = (name: keyof typeof pids): Promise<void> =>
    recording!.until(() => total(atTheBottom(name)) >= SAMPLES, 240_000);

  beforeAll(async () => {
    const paged = compile('paged', 'gcc', ['-O2', '-fomit-frame-pointer', '-pthread'], 'paged.c');
    pids.shared = start(paged, 'shared');
    pids.file = start(paged, 'file', join(scratchFolder, 'paged-stack'));
    pids.gone = start(paged, 'gone');
    recording = await Recording.start({ targets: Object.values(pids).map(toPid) });
    // the table of the program is there, and what was cut has made the agent load what completes stacks
    const cut = (name: keyof typeof pids): boolean =>
      atTheBottom(name).some(({ frames }) => frames.includes(CUT));
    await recording.until(
      () =>
        cut('gone') &&
        (!canDefer() || (counter('samplers.deferring') === 1 && atTheBottom('shared').some(isWhole))),
      240_000,
    );
    recording.clear();
  }, 300_000);

  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL');
    await recording?.stop();
  });

  it.runIf(missingRights || canDefer()).each(['shared', 'file'] as const)(
    'come out whole where the page can be had: %s',
    async (name) => {
      await untilSamples(name);
      // on a busy machine the program is sampled more than once before it drops its page again
      await recording!.until(() => counter('bpf.stacks_completed') >= SAMPLES, 240_000);
      const stacks = atTheBottom(name);
      expect(share(stacks, isWhole), JSON.stringify(stacks.find((s) => !isWhole(s)))).toBeGreaterThan(0.98);
    },
    300_000,
  );

  it('end in a marker where it can not', async () => {
    await untilSamples('gone');
    const stacks = atTheBottom('gone');
    expect(share(stacks, ({ frames }) => frames.at(-1) === CUT)).toBe(1);
    expect(stacks.every((stack) => depth(stack) > 0 && depth(stack) < DEPTH)).toBe(true);
    expect(counter('bpf.user_cut_stack_read')).toBeGreaterThanOrEqual(SAMPLES);
  }, 300_000);

  it('count each sample once', async () => {
    const waiting = (): number =>
      counter('bpf.stacks_deferred') -
      counter('bpf.stacks_completed') -
      counter('bpf.stacks_incomplete') -
      counter('bpf.stacks_too_late');
    for (const child of running) child.kill('SIGKILL');
    await recording!.until(() => waiting() === 0, 60_000);
    const told = (): number =>
      counter('bpf.samples_sent') + counter('bpf.samples_lost_ring') + counter('bpf.traces_lost_ring');
    await recording!.until(() => told() === counter('bpf.samples'), 60_000);
    expect(told()).toBeGreaterThanOrEqual(SAMPLES);
  }, 120_000);
});
