/** Labels that Go programs give their goroutines, and the IDs of these. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import type { ControllerOptions } from '../../agent/controller-options.ts';
import { toPid } from '../../common/base/brand.ts';
import { readProfiles } from '../../common/profile/formats/formats.ts';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import { mainOf, type Profile } from '../../common/profile/model/profile.ts';
import { GOROUTINE_ID, PROGRAM_LABEL } from '../../common/profile/model/sample-attributes.ts';
import { eachOf } from '../support/each-of.ts';
import { scratchFolder } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findGos } from './gos.ts';
import { isWholeMatrix } from './package-roots.ts';

const WHO = `${PROGRAM_LABEL}who`;
const SHARE = 0.3;
/** How programs are built; where a thread has its goroutine is another place in the last one. */
const BUILDS: [title: string, flags: string[]][] = [
  ...(isWholeMatrix
    ? ([
        ['position-independent', ['-buildmode=pie']],
        ['C and a dynamic linker', ['-ldflags=-linkmode=external']],
      ] satisfies [string, string[]][])
    : []),
  ['stripped', ['-ldflags=-s -w']],
  ['C, static', ['-ldflags=-linkmode=external -extldflags=-static']],
];
/** What is between two goroutines, and the collector, has no labels. */
const MAX_UNLABELLED = 0.1;

let recording: Recording | undefined;
let program: ChildProcess | undefined;
afterEach(async () => {
  program?.kill('SIGKILL');
  await recording?.stop();
});

/** Values of the samples by what the attribute says, '' where it is missing; `pid`: of one process. */
function sumsBy(profiles: readonly Profile[], attribute: string, pid?: number): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { samples, processes } of profiles)
    for (const { process, value } of samples) {
      const { pid: own, attributes = '' } = processes[process]!;
      if (pid !== undefined && own !== pid) continue;
      const key = readAttributes(attributes).get(attribute) ?? '';
      sums.set(key, (sums.get(key) ?? 0) + value);
    }
  return sums;
}

/** What was sampled in the function wait(). */
function ofWaits(profile: Profile): Profile[] {
  const { type, stacks, locations, functions, samples } = profile;
  if (type.sampleType.type !== 'off_cpu') return [];
  const isWait = (at: number): boolean =>
    locations[at]!.lines.some(({ func }) => functions[func]!.name === 'main.wait');
  return [{ ...profile, samples: samples.filter(({ stack }) => stacks[stack]!.some(isWait)) }];
}

const totalOf = (sums: ReadonlyMap<string, number>): number => [...sums.values()].reduce((a, b) => a + b, 0);
const shareOf = (sums: ReadonlyMap<string, number>): number =>
  sums.get('a')! / (sums.get('a')! + sums.get('b')!);

/** What their shares may differ by, since both are drawn by chance: one standard deviation. */
const deviation = (...both: ReadonlyMap<string, number>[]): number =>
  Math.sqrt(both.reduce((sum, sums) => sum + (SHARE * (1 - SHARE)) / totalOf(sums), 0));

/** Records a program until so many of its samples have the label `who`; samples by that. */
async function record(
  path: string,
  { args = [], samples, ...options }: { args?: string[]; samples: number } & Partial<ControllerOptions>,
): Promise<Map<string, number>> {
  program = spawn(path, args, { stdio: ['pipe', 'ignore', 'inherit'] });
  const { pid } = program;
  recording = await Recording.start({ targets: [toPid(pid!)], ...options });
  const { profiles } = recording;
  const sums = (): Map<string, number> => sumsBy(profiles, WHO, pid);
  const labelled = (): number => totalOf(sums()) - (sums().get('') ?? 0);
  await recording.until(() => labelled() > 0);
  // samples before its labels were known, and of its start
  recording.clear();
  await recording.until(() => labelled() >= samples, 100_000);
  return sums();
}

function expectLabels(sums: ReadonlyMap<string, number>): void {
  expect([...sums.keys()].filter((key) => key !== '').sort()).toEqual(['a', 'b']);
  expect((sums.get('') ?? 0) / totalOf(sums)).toBeLessThan(MAX_UNLABELLED);
}

eachOf(findGos)('labels of $title', (go) => {
  it('as in the profile that the program takes of itself', async ({ task }) => {
    task.meta.build = go.build;
    const own = join(scratchFolder, `own-${go.build.version}.pb.gz`);
    const sums = await record(go.compile('labels.go'), { args: [own], samples: 600 });
    program!.stdin!.end();
    await once(program!, 'exit');
    expectLabels(sums);
    expect(Math.abs(shareOf(sums) - SHARE)).toBeLessThan(0.07);
    const ofProgram = sumsBy([mainOf(readProfiles(own, readFileSync(own)))], 'who');
    expect(Math.abs(shareOf(sums) - shareOf(ofProgram))).toBeLessThan(4 * deviation(sums, ofProgram));
    const services = sumsBy(recording!.profiles, `${PROGRAM_LABEL}service`, program!.pid);
    expect([...services.keys()].filter((key) => key !== '')).toEqual(['demo']);
  });

  it.each(BUILDS)('%s', async (_, flags) => {
    expectLabels(await record(go.compile('labels.go', flags), { samples: 200 }));
  });

  it('with the IDs of goroutines, where these are asked for', async ({ task }) => {
    task.meta.build = go.build;
    await record(go.compile('labels.go'), { samples: 200, goroutineIds: true });
    const ids = sumsBy(recording!.profiles, GOROUTINE_ID, program!.pid);
    const busiest = [...ids].sort(([, a], [, b]) => b - a).slice(0, 2);
    expect(busiest.every(([id, value]) => /^[1-9]\d*$/.test(id) && value > 20)).toBe(true);
  });

  it('while they wait in system calls, with --off-cpu', async ({ task }) => {
    task.meta.build = go.build;
    program = spawn(go.compile('waits.go'), { stdio: ['pipe', 'pipe', 'inherit'] });
    const { pid } = program;
    const offCpu = { probability: 1, budget: 200 };
    recording = await Recording.start({ targets: [toPid(pid!)], offCpu });
    const { profiles } = recording;
    const waits = (): Map<string, number> => sumsBy(profiles.flatMap(ofWaits), WHO, pid);
    await recording.until(() => totalOf(waits()) > 6e9);
    program.stdin!.end();
    const [said] = (await once(program.stdout!, 'data')) as [Buffer];
    const [a, b] = said.toString().split(' ').map(Number) as [number, number];
    expect([...waits().keys()].filter((key) => key !== '').sort()).toEqual(['a', 'b']);
    expect(Math.abs(shareOf(waits()) - a / (a + b))).toBeLessThan(0.04);
  });

  it('left out where that is asked for', async () => {
    recording = await Recording.start({ labels: false });
    program = spawn(go.compile('labels.go'), { stdio: ['pipe', 'ignore', 'inherit'] });
    const { pid } = program;
    const isWhole = ({ frames }: { frames: string[] }): boolean =>
      frames.includes('runtime.goexit.abi0') || frames.includes('runtime.goexit');
    await recording.until(() => recording!.stacks(pid).filter(isWhole).length > 20);
    expect([...sumsBy(recording.profiles, WHO, pid).keys()]).toEqual(['']);
  });
});
