/** Programs that spend 30 % of their CPU time in a() and 70 % in b(): what profiles say of them, by windows of 5 s. */
import type { FrameType, Profile } from '../../common/profile/model/profile.ts';

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

/** Unix nanoseconds, the end excluded. */
export interface Span {
  from: bigint;
  to: bigint;
}

/**
 * Java's, .NET's and Ruby's have their class before them, Perl's their package, Erlang's their module and number of parameters.
 * The OpenTelemetry profiler shows Java's with their types, and .NET's machines of async methods as those.
 */
const plainName = (name: string): string =>
  name
    .replace(/^(?:[\w.]+ )?(?:Split\.(?:Machines\.)?|Object#|main::|split:)|\/1$|\(.*\)$/g, '')
    .replace(/^(?:.*\/)?<([ab])>d__\d+\.MoveNext$/, '$1');

/** The split of one process by windows of 5 s, since the beginning of a span or else since its first sample. */
export class Windows {
  readonly #span: Span | undefined;
  readonly #splits: (Split | undefined)[] = [];
  #first: bigint | undefined;
  /** Samples of the process in the span, also such that show neither a() nor b(). */
  samples = 0;
  hasAny = false;

  constructor(span?: Span) {
    this.#span = span;
    this.#first = span?.from;
  }

  add(profile: Profile, pid: number, frameType: FrameType): void {
    for (const { process, stack, timestamps } of profile.samples) {
      if (profile.processes[process]!.pid !== pid) continue;
      const times = timestamps.filter((time) => this.#isInSpan(time));
      this.samples += times.length;
      const names = [...profile.stacks[stack]!].flatMap((at) => {
        const { frameType: type, lines } = profile.locations[at]!;
        return type === frameType ? lines.map(({ func }) => plainName(profile.functions[func]!.name)) : [];
      });
      const name = names.find((text) => text === 'a' || text === 'b');
      if (name !== 'a' && name !== 'b') continue;
      for (const time of times) this.#count(name, time);
    }
  }

  #isInSpan(time: bigint): boolean {
    return this.#span === undefined || (time >= this.#span.from && time < this.#span.to);
  }

  #count(name: 'a' | 'b', time: bigint): void {
    this.hasAny = true;
    this.#first ??= time;
    const window = Math.max(0, Number((time - this.#first) / WINDOW_NS));
    const split = this.#splits[window] ?? { a: 0, b: 0 };
    split[name]++;
    this.#splits[window] = split;
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

  /** All windows of a span, undefined where nothing was seen. */
  inSpan({ from, to }: Span): (Split | undefined)[] {
    return Array.from({ length: Number((to - from) / WINDOW_NS) }, (_, i) => this.#splits[i]);
  }
}
