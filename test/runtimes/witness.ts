/** An honest program beside hostile ones: every tick of its CPU time must be a sample, with the stack that it has. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { compile } from '../support/fixtures.ts';
import { type Recording, type Stack, share, total } from '../support/recording.ts';

const DEPTH = 20;
const MIN_SAMPLES = 200;
/** Of the samples that its CPU time allows: the bounds are those of one interval of reporting, and of chance. */
const MIN_SHARE = 0.9;
/** What {@link Recording} samples with. */
const SAMPLES_PER_SECOND = 499;

export interface Witness {
  /** From here on it counts; what came before was cleared. */
  begin(): void;
  hasEnough(): boolean;
  /** Reads its CPU time, and waits for the samples until then. */
  end(): Promise<void>;
  expectComplete(): void;
  stop(): void;
}

/** CPU time of its one thread, ns. */
const cpuTimeOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ', 1)[0]);

const isWhole = ({ frames }: Stack): boolean =>
  frames.filter((name) => name === 'recurse').length === DEPTH && frames.at(-1) === '_start';

/** Resolves when its own stacks are whole. */
export async function startWitness(recording: Recording): Promise<Witness> {
  const path = compile('witness', 'gcc', ['-O2', '-fomit-frame-pointer'], 'deep.c');
  const child: ChildProcess = spawn('nice', ['-n', '19', path, String(DEPTH)], { stdio: 'ignore' });
  const pid = toPid(child.pid!);
  recording.controller.addTarget(pid);
  const atTheBottom = (): Stack[] => recording.stacks(pid).filter(({ frames }) => frames.includes('recurse'));
  await recording.until(() => atTheBottom().some(isWhole));
  let [began, cpuTime] = [0, 0];
  return {
    begin() {
      began = cpuTimeOf(pid);
    },
    hasEnough: () => total(recording.stacks(pid)) >= MIN_SAMPLES,
    async end() {
      cpuTime = cpuTimeOf(pid) - began;
      await recording.controller.flush();
    },
    expectComplete() {
      const expected = (cpuTime / 1e9) * SAMPLES_PER_SECOND;
      expect(total(recording.stacks(pid)) / expected).toBeGreaterThan(MIN_SHARE);
      expect(share(atTheBottom(), isWhole)).toBeGreaterThan(0.98);
    },
    stop() {
      child.kill('SIGKILL');
    },
  };
}
