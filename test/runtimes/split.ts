/** Programs that spend 30 % of their time in a() and 70 % in b(), as a receiver of OTLP sees them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { decodeOtlp } from '../../common/profile/otlp-decode.ts';
import { encodeOtlp } from '../../common/profile/otlp-encode.ts';
import type { FrameType, Profile } from '../../common/profile/profile.ts';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { isWholeMatrix } from './debian-roots.ts';

const SHARE = 0.3;
const TOLERANCE = 0.03;
const SAMPLES_PER_SECOND = 997;
const WINDOW_NS = 5_000_000_000n;
const WINDOWS = isWholeMatrix ? 6 : 1;
/** Of each program in a window, and in all: with fewer a share says little. */
const MIN_SAMPLES = 50;
const MIN_TOTAL = isWholeMatrix ? 4000 : 400;
const LIMIT_MS = isWholeMatrix ? 180_000 : 90_000;

export interface SplitProgram {
  /** Program and arguments before the shape. */
  command: readonly string[];
  build: TestedBuild;
  shapes: readonly string[];
  frameType: FrameType;
}

/** Samples in a() and in b(). */
interface Split {
  a: number;
  b: number;
}

const all = ({ a, b }: Split): number => a + b;
const shareOf = (split: Split): number => split.a / Math.max(1, all(split));
const deviation = (split: Split): number => Math.sqrt((SHARE * (1 - SHARE)) / Math.max(1, all(split)));

/** What arrives: written as OTLP, and read again. */
function received(profile: Profile): Profile[] {
  const result = decodeOtlp(encodeOtlp(profile, { scopeName: 'test', scopeVersion: '0' }));
  return result.profiles;
}

const sumOf = (splits: readonly Split[]): number => splits.reduce((sum, split) => sum + all(split), 0);

/** The split of one process by windows of 5 s since its first sample. */
class Windows {
  readonly #splits: (Split | undefined)[] = [];
  #first: bigint | undefined;

  add(profile: Profile, pid: number, frameType: FrameType): void {
    for (const { process, stack, timestamps } of profile.samples) {
      if (profile.processes[process]!.pid !== pid) continue;
      const names = [...profile.stacks[stack]!].flatMap((at) => {
        const { frameType: type, lines } = profile.locations[at]!;
        return type === frameType ? lines.map(({ func }) => profile.functions[func]!.name) : [];
      });
      const name = names.find((text) => text === 'a' || text === 'b');
      if (name !== 'a' && name !== 'b') continue;
      for (const time of timestamps) this.#count(name, time);
    }
  }

  #count(name: 'a' | 'b', time: bigint): void {
    this.#first ??= time;
    const window = Math.max(0, Number((time - this.#first) / WINDOW_NS));
    const split = this.#splits[window] ?? { a: 0, b: 0 };
    split[name]++;
    this.#splits[window] = split;
  }

  get hasAny(): boolean {
    return this.#first !== undefined;
  }

  /** Those that are over and have enough samples. */
  get whole(): Split[] {
    return this.#splits
      .slice(0, -1)
      .filter((split) => split !== undefined && all(split) >= MIN_SAMPLES) as Split[];
  }
}

/** Runs all shapes of a program at once and holds each to its share. */
export function itKeepsTheSplit({ command, build, shapes, frameType }: SplitProgram): void {
  const running = new Map<string, ChildProcess>();
  const seen = new Map<string, Windows>();
  let recording: Recording;

  const forget = () => {
    for (const shape of shapes) seen.set(shape, new Windows());
  };
  const read = () => {
    for (const profile of recording.profiles.splice(0).flatMap(received)) {
      for (const shape of shapes) seen.get(shape)!.add(profile, running.get(shape)!.pid!, frameType);
    }
  };

  beforeAll(async () => {
    for (const shape of shapes)
      running.set(shape, spawn('nice', ['-n', '10', ...command, shape], { stdio: 'ignore' }));
    const targets = [...running.values()].map(({ pid }) => toPid(pid!));
    recording = await Recording.start({ samplesPerSecond: SAMPLES_PER_SECOND, targets });
    forget();
    await recording.until(() => {
      read();
      return [...seen.values()].every(({ hasAny }) => hasAny);
    });
    forget();
    await recording.until(() => {
      read();
      return [...seen.values()].every(({ whole }) => whole.length >= WINDOWS && sumOf(whole) >= MIN_TOTAL);
    }, LIMIT_MS);
  }, LIMIT_MS + 90_000);

  afterAll(async () => {
    for (const child of running.values()) child.kill('SIGKILL');
    await recording?.stop();
  });

  it.for(shapes)('%s', (shape, { task }) => {
    const windows = seen.get(shape)!.whole;
    const whole = windows.reduce((x, y) => ({ a: x.a + y.a, b: x.b + y.b }), { a: 0, b: 0 });
    task.meta.build = build;
    task.meta.split = { shape, samples: all(whole), share: shareOf(whole), windows: windows.map(shareOf) };
    const texts = windows.map((split) => `${(shareOf(split) * 100).toFixed(1)} % of ${all(split)}`);
    console.log(`${build.series} ${shape}: in a() ${texts.join(', ')}`);
    for (const split of windows)
      expect(Math.abs(shareOf(split) - SHARE), texts.join(', ')).toBeLessThanOrEqual(
        Math.max(TOLERANCE, 4 * deviation(split)),
      );
    const limit = Math.max(TOLERANCE, 4 * deviation(whole));
    expect(Math.abs(shareOf(whole) - SHARE), texts.join(', ')).toBeLessThanOrEqual(limit);
  });
}
