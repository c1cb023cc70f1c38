/** Runs the real agent in this process and keeps what it reports. */

import { Controller } from '../../agent/controller.ts';
import type { ControllerOptions } from '../../agent/controller-options.ts';
import type { Pid } from '../../common/base/brand.ts';
import type { Profile } from '../../common/profile/model/profile.ts';

const DEFAULTS: ControllerOptions = {
  samplesPerSecond: 499,
  symbols: 'full' as const,
  sendIdleFrames: false,
  sourceMaps: true,
  maxUserFrames: 1023,
  maxTableBytes: 128 << 20,
  // with the test runner's own memory
  maxMemoryBytes: 4 * 2 ** 30,
  intervalMs: 250,
  jitter: 0,
  probabilisticThreshold: 100,
  probabilisticIntervalMs: 60_000,
};

/** A stack as names, leaf first; a frame without a name is `file+0xaddress`, kernel frames end in `_[k]`. */
export interface Stack {
  pid: number;
  threadName: string;
  frames: string[];
  kernelFrames: number;
  count: number;
}

export class Recording {
  readonly profiles: Profile[] = [];
  readonly warnings: string[] = [];
  #controller: Controller | undefined;
  /** Of profiles that came: who waits looks at all of them again and again. */
  readonly #stacks = new WeakMap<Profile, Stack[]>();

  static async start(options: Partial<ControllerOptions> = {}): Promise<Recording> {
    const recording = new Recording();
    const log = {
      info: () => {},
      debug: () => {},
      warn: (message: string) => void recording.warnings.push(message),
    };
    const sink = { push: (profile: Profile) => void recording.profiles.push(profile) };
    recording.#controller = await Controller.start({ ...DEFAULTS, ...options }, sink, log);
    return recording;
  }

  get controller(): Controller {
    return this.#controller!;
  }

  /** Forgets what came so far, such as the samples before a table was there. */
  clear(): void {
    this.profiles.length = 0;
  }

  stacks(pid?: Pid | number): Stack[] {
    const stacks = this.profiles.flatMap((profile) => this.#stacksOf(profile));
    return pid === undefined ? stacks : stacks.filter((stack) => stack.pid === pid);
  }

  #stacksOf(profile: Profile): Stack[] {
    const known = this.#stacks.get(profile);
    if (known) return known;
    const stacks = stacksOf(profile);
    this.#stacks.set(profile, stacks);
    return stacks;
  }

  /** Waits until `condition` holds, looking whenever a profile may have come; fails after `timeoutMs`. */
  async until(condition: (stacks: Stack[]) => boolean, timeoutMs = 60_000): Promise<void> {
    const end = Date.now() + timeoutMs;
    while (!condition(this.stacks())) {
      if (Date.now() > end) {
        throw new Error(
          `nothing like it within ${timeoutMs} ms: ${JSON.stringify(this.controller.counters())}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }

  stop(): Promise<void> {
    return this.controller.stop();
  }
}

export function stacksOf(profile: Profile): Stack[] {
  // inlined functions are frames, too: libc has some where its debug information is installed
  const namesOf = (index: number): string[] => {
    const { lines, frameType, mapping, address } = profile.locations[index]!;
    const suffix = frameType === 'kernel' ? '_[k]' : '';
    if (lines.length > 0) return lines.map(({ func }) => profile.functions[func]!.name + suffix);
    return [`${profile.mappings[mapping]!.filename}+0x${address.toString(16)}`];
  };
  return profile.samples.map((sample) => {
    const locations = profile.stacks[sample.stack]!;
    return {
      pid: profile.processes[sample.process]!.pid,
      threadName: sample.threadName,
      frames: Array.from(locations).flatMap(namesOf),
      kernelFrames: locations.filter((l) => profile.locations[l]!.frameType === 'kernel').length,
      count: sample.value,
    };
  });
}

export const total = (stacks: Stack[]): number => stacks.reduce((sum, stack) => sum + stack.count, 0);

/** Share of the samples whose stack fulfils the predicate, 0 to 1. */
export const share = (stacks: Stack[], predicate: (stack: Stack) => boolean): number =>
  total(stacks.filter(predicate)) / Math.max(1, total(stacks));
