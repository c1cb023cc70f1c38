/** Programs that spend 30 % of their CPU time in a() and 70 % in b(): what profiles say of them, by windows of 5 s. */
import type { FrameType, Profile } from '../../common/profile/profile.ts';

export const SHARE = 0.3;
const WINDOW_NS = 5_000_000_000n;

/** Samples in a() and in b(). */
export interface Split {
  a: number;
  b: number;
}

export const all = ({ a, b }: Split): number => a + b;
export const shareOf = (split: Split): number => split.a / Math.max(1, all(split));
/** Of the share that so many samples show. */
export const deviation = (split: Split): number => Math.sqrt((SHARE * (1 - SHARE)) / Math.max(1, all(split)));
export const sumOf = (splits: readonly Split[]): Split =>
  splits.reduce((x, y) => ({ a: x.a + y.a, b: x.b + y.b }), { a: 0, b: 0 });

/** The split of one process by windows of 5 s since its first sample. */
export class Windows {
  readonly #splits: (Split | undefined)[] = [];
  #first: bigint | undefined;
  /** Samples of the process, also such that show neither a() nor b(). */
  samples = 0;

  add(profile: Profile, pid: number, frameType: FrameType): void {
    for (const { process, stack, timestamps } of profile.samples) {
      if (profile.processes[process]!.pid !== pid) continue;
      this.samples += timestamps.length;
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

  /** All that was seen. */
  get sum(): Split {
    return sumOf(this.#splits.filter((split) => split !== undefined));
  }

  /** Those that are over and have so many samples. */
  whole(minSamples: number): Split[] {
    return this.#splits
      .slice(0, -1)
      .filter((split) => split !== undefined && all(split) >= minSamples) as Split[];
  }
}
