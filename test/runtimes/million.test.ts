/** A million calls inside one another: each sample ends at the depth limit, says so, and costs what others do. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { FrameType } from '../../common/profile/model/profile.ts';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findNodes } from './nodes.ts';
import { type Interpreter, isWholeMatrix } from './package-roots.ts';
import { findPythons } from './pythons.ts';
import { startWitness, type Witness } from './witness.ts';

/** `--max-user-frames` by itself. */
const LIMIT = 1023;
const SAMPLES = 60;
const CUT = '[cut: deeper than the limit]';
const KERNEL_FRAMES = 128;
/** KiB. V8 counts by itself how deep it may go; a call takes a hundred bytes and more. */
const NODE_STACK = '--stack-size=900000';
/** Before 3.11 a Python call is three calls of C. */
const OLDEST_PYTHON = 11;

const canGrowStacks = spawnSync('sh', ['-c', 'ulimit -s unlimited'], { stdio: 'ignore' }).status === 0;
if (!canGrowStacks) console.log('skipped: the limit of the stack may not be raised here');

interface Program {
  title: string;
  build: TestedBuild;
  command: string[];
  frameType: FrameType;
}

const programOf = (
  { title, build, command, place }: Interpreter & { title: string; build: TestedBuild },
  flags: string[],
  script: string,
  frameType: FrameType,
): Program => ({
  title,
  build,
  command: [...command, ...flags, place(join(import.meta.dirname, script))],
  frameType,
});

function findPrograms(): Program[] {
  const pythons = findPythons().filter(({ minor }) => minor >= OLDEST_PYTHON);
  const many = isWholeMatrix ? undefined : 1;
  return [
    ...pythons.slice(0, many).map((python) => programOf(python, [], 'python/million.py', 'cpython')),
    ...findNodes()
      .slice(0, many)
      .map((node) => programOf(node, [NODE_STACK], 'v8/million.cjs', 'v8js')),
  ];
}

/** Resolves at the bottom of its stack. */
async function start(command: readonly string[]): Promise<ChildProcess> {
  const raised = ['-c', 'ulimit -s unlimited; exec nice -n 19 "$@"', 'sh', ...command];
  const child = spawn('sh', raised, { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise<void>((resolve, reject) => {
    createInterface(child.stdout).once('line', () => resolve());
    child.once('exit', (code, signal) => reject(new Error(`${command.join(' ')} ended: ${code ?? signal}`)));
  });
  return child;
}

const isPossible = missingRights === '' && canGrowStacks;

describe.skipIf(!isPossible).each(isPossible ? findPrograms() : [])(
  '$title',
  ({ build, command, frameType }) => {
    let child: ChildProcess;
    let recording: Recording;
    let witness: Witness;

    /** The stacks that reached the language's functions: before the tables are there, none does. */
    const stacks = () =>
      recording.profiles.flatMap((profile) =>
        profile.samples
          .filter(({ process }) => profile.processes[process]!.pid === child.pid)
          .map(({ stack, value: count }) => ({
            count,
            frames: [...profile.stacks[stack]!].map((at) => {
              const { frameType: type, lines } = profile.locations[at]!;
              return { type, name: lines[0] ? profile.functions[lines[0].func]!.name : '' };
            }),
          }))
          .filter(({ frames }) => frames.some(({ type }) => type === frameType)),
      );
    const count = (of: ReturnType<typeof stacks>): number => of.reduce((sum, stack) => sum + stack.count, 0);

    beforeAll(async () => {
      child = await start(command);
      recording = await Recording.start({ targets: [toPid(child.pid!)], maxUserFrames: LIMIT });
      witness = await startWitness(recording);
      await recording.until(() => count(stacks()) > 0);
      recording.clear();
      witness.begin();
      await recording.until(() => witness.hasEnough() && count(stacks()) >= SAMPLES);
      await witness.end();
    }, 240_000);

    afterAll(async () => {
      child?.kill('SIGKILL');
      witness?.stop();
      await recording?.stop();
    });

    it('a million frames deep', ({ task }) => {
      task.meta.build = build;
      const seen = stacks();
      expect(Math.max(...seen.map(({ frames }) => frames.length))).toBeLessThanOrEqual(
        LIMIT + 1 + KERNEL_FRAMES,
      );
      const cut = seen.filter(({ frames }) => frames.at(-1)!.name === CUT);
      expect(count(cut) / count(seen)).toBeGreaterThan(0.95);
      for (const { frames } of cut) {
        // what the functions call in V8 itself has frames of this kind where V8 has copied its built-in functions
        const isOwn = ({ type, name }: { type: string; name: string }) =>
          type === frameType && !name.startsWith('[v8: ');
        const names = frames.filter(isOwn).map(({ name }) => name);
        expect(new Set(names)).toEqual(new Set(['descend']));
      }
      expect(recording.controller.counters()['bpf.user_cut_depth']).toBeGreaterThan(0);
    });

    it('costs other processes nothing', () => {
      witness.expectComplete();
    });
  },
);
