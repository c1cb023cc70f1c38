/** Holds programs that spend 30 % of their time in a() and 70 % in b() to it, as a receiver of OTLP sees them. */
import { type ChildProcess, spawn } from 'node:child_process';
import process from 'node:process';
import { afterAll, beforeAll, expect, it, type RunnerTask } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { FrameType, Profile } from '../../common/profile/model/profile.ts';
import { decodeOtlp } from '../../common/profile/otlp/otlp-decode.ts';
import { encodeOtlp } from '../../common/profile/otlp/otlp-encode.ts';
import { titleOfSplit } from '../../scripts/runtime-support.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { all, deviation, SHARE, type Split, shareOf, sumOf, Windows } from './known-split.ts';
import { isWholeMatrix } from './package-roots.ts';
import type { SplitCase } from './split-cases.ts';

const TOLERANCE = 0.03;
const WINDOWS = isWholeMatrix ? 6 : 1;
/** With fewer samples a share says little; as many as a program gets that shares two CPUs with all the others. */
const RATES: readonly { rate: number; minOfWindow: number; minOfAll: number }[] = isWholeMatrix
  ? [
      { rate: 997, minOfWindow: 50, minOfAll: 4000 },
      { rate: 97, minOfWindow: 20, minOfAll: 400 },
    ]
  : [{ rate: 997, minOfWindow: 50, minOfAll: 400 }];
const LIMIT_MS = isWholeMatrix ? 240_000 : 90_000;

/** What arrives: written as OTLP, and read again. */
function received(profile: Profile): Profile[] {
  const result = decodeOtlp(encodeOtlp([profile], { scopeName: 'test', scopeVersion: '0' }));
  return result.profiles;
}

/** What an agent at one rate has seen, by shape. */
class Observer {
  readonly #recording: Recording;
  readonly #limits: (typeof RATES)[number];
  #seen = new Map<string, Windows>();

  constructor(recording: Recording, limits: (typeof RATES)[number]) {
    this.#recording = recording;
    this.#limits = limits;
  }

  windowsOf(shape: string): Split[] {
    return this.#seen.get(shape)?.whole(this.#limits.minOfWindow) ?? [];
  }

  stop(): Promise<void> {
    return this.#recording.stop();
  }

  /** Waits for the first sample of each, forgets what came before, and waits for enough of each. */
  async watch(programs: ReadonlyMap<string, ChildProcess>, frameType: FrameType): Promise<void> {
    const forget = () => {
      this.#seen = new Map([...programs.keys()].map((shape) => [shape, new Windows()]));
    };
    const read = () => {
      for (const profile of this.#recording.profiles.splice(0).flatMap(received)) {
        for (const [shape, { pid }] of programs) this.#seen.get(shape)!.add(profile, pid!, frameType);
      }
    };
    const isEnough = (splits: Split[]) =>
      splits.length >= WINDOWS && all(sumOf(splits)) >= this.#limits.minOfAll;
    forget();
    await this.#recording.until(() => {
      read();
      return [...this.#seen.values()].every(({ hasAny }) => hasAny);
    });
    forget();
    await this.#recording.until(() => {
      read();
      return [...programs.keys()].every((shape) => isEnough(this.windowsOf(shape)));
    }, LIMIT_MS);
  }
}

/** Runs all shapes of a program at once and holds each to its share, at each rate at once. */
export function itKeepsTheSplit(program: SplitCase): void {
  const { command, environment = {}, build, shapes, frameType } = program;
  const running = new Map<string, ChildProcess>();
  const observers = new Map<number, Observer>();

  beforeAll(async () => {
    const env = { ...process.env, ...environment };
    for (const shape of shapes)
      running.set(shape, spawn('nice', ['-n', '10', ...command, shape], { stdio: 'ignore', env }));
    const targets = [...running.values()].map(({ pid }) => toPid(pid!));
    for (const limits of RATES) {
      const recording = await Recording.start({ samplesPerSecond: limits.rate, targets });
      observers.set(limits.rate, new Observer(recording, limits));
    }
    await Promise.all([...observers.values()].map((observer) => observer.watch(running, frameType)));
  }, LIMIT_MS + 90_000);

  afterAll(async () => {
    for (const child of running.values()) child.kill('SIGKILL');
    for (const observer of observers.values()) await observer.stop();
  });

  const cases = shapes.flatMap((shape) => RATES.map(({ rate }) => [shape, rate] as const));
  for (const [shape, rate] of cases) it(titleOfSplit(shape, rate), ({ task }) => hold(shape, rate, task));

  function hold(shape: string, rate: number, task: RunnerTask): void {
    const windows = observers.get(rate)!.windowsOf(shape);
    const whole = sumOf(windows);
    task.meta.build = build;
    task.meta.split = {
      shape,
      rate,
      samples: all(whole),
      share: shareOf(whole),
      windows: windows.map(shareOf),
    };
    const texts = windows.map((split) => `${(shareOf(split) * 100).toFixed(1)} % of ${all(split)}`);
    console.log(`${build.series} ${titleOfSplit(shape, rate)}: in a() ${texts.join(', ')}`);
    for (const split of [...windows, whole])
      expect(Math.abs(shareOf(split) - SHARE), texts.join(', ')).toBeLessThanOrEqual(
        Math.max(TOLERANCE, 4 * deviation(split)),
      );
  }
}
