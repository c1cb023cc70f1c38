/** Several profiles as one: tables interned by content, equal samples joined. */
import { emptyProfile, type Process, type Profile, type Sample } from './profile.ts';

export function mergeProfiles(profiles: readonly Profile[]): Profile {
  if (profiles.length === 1) return profiles[0]!;
  const merger = new Merger();
  for (const profile of profiles) merger.add(profile);
  return merger.profile;
}

class Merger {
  readonly profile = emptyProfile();
  readonly #mappings = new Map<string, number>();
  readonly #functions = new Map<string, number>();
  readonly #locations = new Map<string, number>();
  readonly #stacks = new Map<string, number>();
  readonly #processes = new Map<string, number>();
  readonly #samples = new Map<string, Sample>();

  constructor() {
    const { mappings, functions, locations, processes } = this.profile;
    this.#intern(this.#mappings, JSON.stringify(Object.values(mappings[0]!).map(String)), [], () => 0);
    this.#intern(this.#functions, JSON.stringify(Object.values(functions[0]!)), [], () => 0);
    this.#intern(this.#locations, locationKey(0, locations[0]!), [], () => 0);
    this.#intern(this.#processes, processKey(processes[0]!), [], () => 0);
    this.#stacks.set('', 0);
  }

  add(other: Profile): void {
    const mappings = other.mappings.map((m) =>
      this.#intern(
        this.#mappings,
        JSON.stringify(Object.values(m).map(String)),
        this.profile.mappings,
        () => m,
      ),
    );
    const functions = other.functions.map((f) =>
      this.#intern(this.#functions, JSON.stringify(Object.values(f)), this.profile.functions, () => f),
    );
    const locations = other.locations.map((l) => {
      const mapping = mappings[l.mapping]!;
      const lines = l.lines.map((line) => ({ ...line, func: functions[line.func]! }));
      const moved = { ...l, mapping, lines };
      return this.#intern(this.#locations, locationKey(mapping, moved), this.profile.locations, () => moved);
    });
    const stacks = other.stacks.map((stack) => {
      const moved = stack.map((location) => locations[location]!);
      return this.#intern(this.#stacks, moved.join(), this.profile.stacks, () => moved);
    });
    const processes = other.processes.map((p) =>
      this.#intern(this.#processes, processKey(p), this.profile.processes, () => p),
    );
    for (const sample of other.samples)
      this.#addSample(sample, stacks[sample.stack]!, processes[sample.process]!);
    this.#widen(other);
  }

  #addSample(sample: Sample, stack: number, process: number): void {
    const key = `${stack}/${process}/${sample.tid}/${sample.cpu}/${sample.threadName}`;
    const known = this.#samples.get(key);
    if (known) {
      known.count += sample.count;
      for (const timestamp of sample.timestamps) known.timestamps.push(timestamp);
      return;
    }
    const moved = { ...sample, stack, process, timestamps: [...sample.timestamps] };
    this.#samples.set(key, moved);
    this.profile.samples.push(moved);
  }

  /** The window that holds both. */
  #widen(other: Profile): void {
    const { profile } = this;
    const isFirst = profile.period === 0n && profile.timeUnixNano === 0n;
    const end = profile.timeUnixNano + profile.durationNano;
    const otherEnd = other.timeUnixNano + other.durationNano;
    if (isFirst) {
      const { timeUnixNano, durationNano, sampleType, periodType, period } = other;
      Object.assign(profile, {
        timeUnixNano,
        durationNano,
        sampleType,
        periodType,
        period,
        host: { ...other.host },
      });
      return;
    }
    if (other.timeUnixNano < profile.timeUnixNano) profile.timeUnixNano = other.timeUnixNano;
    profile.durationNano = (otherEnd > end ? otherEnd : end) - profile.timeUnixNano;
  }

  #intern<T>(indices: Map<string, number>, key: string, table: T[], make: () => T): number {
    let index = indices.get(key);
    if (index === undefined) {
      index = table.push(make()) - 1;
      indices.set(key, index);
    }
    return index;
  }
}

const locationKey = (mapping: number, location: Profile['locations'][number]): string =>
  `${mapping}/${location.address}/${location.frameType}/${location.lines.map((l) => `${l.func}:${l.line}:${l.column}`).join()}`;

const processKey = (process: Process): string => Object.values(process).join('\0');
