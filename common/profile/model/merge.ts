/** Several profiles as one of each type: tables interned by content, equal samples joined. */
import { intern } from './intern.ts';
import { LinkTable } from './link.ts';
import {
  addEvents,
  emptyProfile,
  type Func,
  type Location,
  type Mapping,
  mainOf,
  type Process,
  type Profile,
  type ProfileSet,
  type Sample,
  setOf,
  valueAt,
} from './profile.ts';
import { countsSamples, type ProfileType, typeKey, valueKind } from './profile-type.ts';

/**
 * One profile a type, in the order in which the types come; they share their tables. CPU samples where none is given.
 * Samples of different periods become the time that they stand for, which can be added up. Of a state, such as memory in
 * use, the latest of each process is kept: those of different times are not a sum.
 *
 * Leaves the given profiles as they are; the result may share entries with them.
 *
 * @throws Error for samples of which some have a period and others none
 */
export function mergeProfiles(profiles: readonly Profile[]): Profile[] {
  const merger = new Merger();
  for (const profile of lastStates(inAddableTypes(profiles))) merger.add(profile);
  return merger.profiles.length === 0 ? [emptyProfile()] : merger.profiles;
}

/** The same of sets; the main type is that of the first one that has samples of its own. */
export function mergeSets(sets: readonly ProfileSet[]): ProfileSet {
  const merged = setOf(mergeProfiles(sets.flatMap(({ profiles }) => profiles)));
  const first = sets.map(mainOf).find(({ samples }) => samples.length > 0);
  const main = first ? merged.profiles.findIndex(({ type }) => typeKey(type) === typeKey(first.type)) : -1;
  return main < 0 ? merged : { ...merged, main };
}

/** One profile with its tables interned and its equal samples joined. */
export const joinEqual = (profile: Profile): Profile => mergeProfiles([profile])[0]!;

/** The same, with one period for all samples of a type, or with the time that they stand for in place of samples. */
function inAddableTypes(profiles: readonly Profile[]): readonly Profile[] {
  const periods = new Map<string, Set<bigint>>();
  for (const { type, samples } of profiles) {
    if (!countsSamples(type) || samples.length === 0) continue;
    const known = periods.get(typeKey(type)) ?? new Set();
    periods.set(typeKey(type), known.add(type.period));
    if (known.size > 1 && known.has(0n))
      throw new Error(
        "samples of an unknown period and samples of a known one can't be added up: convert them into files of their own",
      );
  }
  return profiles.flatMap((profile) => {
    const [first, second] = periods.get(typeKey(profile.type)) ?? [];
    if (second === undefined) return [first === undefined ? profile : withPeriod(profile, first)];
    return profile.samples.length === 0 ? [] : [inTime(profile)];
  });
}

/** An interval without samples takes the period of those that have some. */
const withPeriod = (profile: Profile, period: bigint): Profile =>
  profile.type.period === period ? profile : { ...profile, type: { ...profile.type, period } };

function inTime(profile: Profile): Profile {
  const { periodType, period } = profile.type;
  const scale = Number(period);
  const samples = profile.samples.map((sample) => ({
    ...sample,
    value: sample.value * scale,
    ...(sample.timestamps.length > 0 && {
      values: sample.timestamps.map((_, event) => valueAt(sample, event) * scale),
    }),
  }));
  return { ...profile, type: { sampleType: periodType, periodType, period: 0n }, samples };
}

/** Without earlier states of the processes that have a later one. */
function lastStates(profiles: readonly Profile[]): readonly Profile[] {
  const isState = ({ type, samples }: Profile): boolean => valueKind(type) === 'level' && samples.length > 0;
  const states = profiles.filter(isState);
  if (states.length < 2) return profiles;
  const latest = new Map<string, bigint>();
  for (const profile of states) {
    for (const process of new Set(profile.samples.map((sample) => sample.process))) {
      const key = stateKey(profile, process);
      const known = latest.get(key);
      if (known === undefined || endOf(profile) > known) latest.set(key, endOf(profile));
    }
  }
  return profiles.map((profile) => {
    if (!isState(profile)) return profile;
    const isLast = profile.processes.map((_, i) => latest.get(stateKey(profile, i)) === endOf(profile));
    return { ...profile, samples: profile.samples.filter(({ process }) => isLast[process]) };
  });
}

const endOf = ({ timeUnixNano, durationNano }: Profile): bigint => timeUnixNano + durationNano;

/** Whose state: without attributes, which may be those of a sample. */
function stateKey({ type, host, processes }: Profile, process: number): string {
  const { pid, startUnixNano, executableName, executablePath, containerId, serviceName } =
    processes[process]!;
  const who = [pid, startUnixNano, executableName, executablePath, containerId, serviceName];
  return [typeKey(type), host['host.name'] ?? '', ...who].join('\0');
}

/** What the entries of one profile's tables are in the merged ones; profiles of one file share theirs. */
interface Moved {
  from: Pick<Profile, 'stacks' | 'processes' | 'locations' | 'links'>;
  stacks: number[];
  processes: number[];
  links: number[];
}

class Merger {
  readonly profiles: Profile[] = [];
  readonly #tables = emptyProfile();
  readonly #mappings = new Map<string, number>();
  readonly #functions = new Map<string, number>();
  readonly #locations = new Map<string, number>();
  readonly #stacks = new Map<string, number>();
  readonly #processes = new Map<string, number>();
  readonly #links = new LinkTable();
  /** By type. */
  readonly #merged = new Map<string, MergedType>();
  #moved: Moved | undefined;

  constructor() {
    const { mappings, functions, locations, processes } = this.#tables;
    this.#mappings.set(mappingKey(mappings[0]!), 0);
    this.#functions.set(functionKey(functions[0]!), 0);
    this.#locations.set(locationKey(locations[0]!), 0);
    this.#processes.set(processKey(processes[0]!), 0);
    this.#stacks.set('', 0);
  }

  add(other: Profile): void {
    const { stacks, processes, links } = this.#move(other);
    const merged = this.#ofType(other.type);
    merged.widen(other);
    for (const sample of other.samples) {
      const link = sample.link ? links[sample.link]! : 0;
      merged.add(sample, stacks[sample.stack]!, processes[sample.process]!, link);
    }
  }

  #ofType(type: ProfileType): MergedType {
    const key = typeKey(type);
    let merged = this.#merged.get(key);
    if (!merged) {
      const { mappings, functions, locations, stacks, processes } = this.#tables;
      const { links } = this.#links;
      const profile = { ...emptyProfile(), mappings, functions, locations, stacks, processes, links, type };
      merged = new MergedType(profile);
      this.#merged.set(key, merged);
      this.profiles.push(profile);
    }
    return merged;
  }

  #move(other: Profile): Moved {
    const moved = this.#moved;
    const { stacks, processes, locations, links } = other;
    const isSame =
      moved?.from.stacks === stacks &&
      moved.from.processes === processes &&
      moved.from.locations === locations &&
      moved.from.links === links;
    if (moved && isSame) return moved;
    this.#moved = {
      from: other,
      stacks: this.#moveStacks(other),
      processes: this.#moveProcesses(other),
      links: links.map((link) => this.#links.indexOf(link)),
    };
    return this.#moved;
  }

  #moveStacks(other: Profile): number[] {
    // only what a stack leads to: tables may hold what other profiles need
    const locations = new Map<number, number>();
    const locationOf = (old: number): number => {
      const index = locations.get(old) ?? this.#addLocation(other, old);
      locations.set(old, index);
      return index;
    };
    return other.stacks.map((stack) => {
      const moved = stack.map(locationOf);
      return intern(this.#stacks, moved.join(), this.#tables.stacks, () => moved);
    });
  }

  #addLocation(other: Profile, old: number): number {
    const tables = this.#tables;
    const location = other.locations[old]!;
    const mapping = other.mappings[location.mapping]!;
    const lines = location.lines.map((line) => {
      const func = other.functions[line.func]!;
      return { ...line, func: intern(this.#functions, functionKey(func), tables.functions, () => func) };
    });
    const index = intern(this.#mappings, mappingKey(mapping), tables.mappings, () => mapping);
    const moved = { ...location, mapping: index, lines };
    return intern(this.#locations, locationKey(moved), tables.locations, () => moved);
  }

  /** What one of the profiles did not know of a process yet is taken from the other. */
  #moveProcesses(other: Profile): number[] {
    const { processes } = this.#tables;
    return other.processes.map((process) => {
      const index = intern(this.#processes, processKey(process), processes, () => process);
      const known = processes[index]!;
      if (known !== process && index > 0) processes[index] = complete(known, process);
      return index;
    });
  }
}

/** The samples of one type. */
class MergedType {
  readonly #profile: Profile;
  readonly #samples = new Map<string, Sample>();
  #isEmpty = true;

  constructor(profile: Profile) {
    this.#profile = profile;
  }

  add(sample: Sample, stack: number, process: number, link: number): void {
    // values without times would be lost among those with: an entry has a time for each event, or none
    const isTimed = sample.timestamps.length > 0;
    const key = `${stack}/${process}/${sample.tid}/${sample.cpu}/${isTimed}/${link}/${sample.threadName}`;
    const known = this.#samples.get(key);
    if (known) {
      addEvents(known, sample);
      return;
    }
    const moved = { ...sample, stack, process, timestamps: [...sample.timestamps] };
    if (sample.values) moved.values = [...sample.values];
    if (sample.link) moved.link = link;
    this.#samples.set(key, moved);
    this.#profile.samples.push(moved);
  }

  /** The window that holds all; the attributes that all have. */
  widen(other: Profile): void {
    const profile = this.#profile;
    const { timeUnixNano, durationNano } = other;
    const isFirst = this.#isEmpty;
    this.#isEmpty = false;
    if (isFirst || (profile.samples.length === 0 && other.samples.length > 0)) {
      profile.type = other.type;
      profile.host = { ...other.host };
    } else if (other.samples.length > 0) {
      if (profile.type.period !== other.type.period) profile.type = { ...profile.type, period: 0n };
      for (const [key, value] of Object.entries(profile.host)) {
        if (other.host[key] !== value) delete profile.host[key];
      }
    }
    // an interval in which nothing was sampled has no window
    if (timeUnixNano === 0n) return;
    const start = profile.timeUnixNano;
    const [end, otherEnd] = [start + profile.durationNano, timeUnixNano + durationNano];
    profile.timeUnixNano = start === 0n || timeUnixNano < start ? timeUnixNano : start;
    profile.durationNano = (otherEnd > end ? otherEnd : end) - profile.timeUnixNano;
  }
}

const mappingKey = (m: Mapping): string =>
  [m.memoryStart, m.memoryLimit, m.fileOffset, m.gnuBuildId, m.goBuildId, m.fileId, m.filename].join('\0');

const functionKey = (f: Func): string => [f.name, f.systemName, f.filename, f.startLine].join('\0');

const locationKey = (l: Location): string =>
  `${l.mapping}/${l.address}/${l.frameType}/${l.lines.map((line) => `${line.func}:${line.line}:${line.column}`).join()}/${l.generated ?? ''}/${l.functionStart ?? ''}`;

/** Where PID and start are not known, as in most file formats, everything else has to tell processes apart. */
function processKey(process: Process): string {
  const { pid, startUnixNano, executablePath, attributes = '' } = process;
  if (pid > 0 && startUnixNano > 0n) return [pid, startUnixNano, executablePath, attributes].join('\0');
  const { parentPid, executableName, commandName, containerId, cgroupPath, serviceName } = process;
  const names = [executablePath, executableName, commandName, containerId, cgroupPath, serviceName];
  return [pid, startUnixNano, parentPid, ...names, attributes].join('\0');
}

const complete = (known: Process, other: Process): Process => ({
  ...known,
  parentPid: known.parentPid || other.parentPid,
  executableName: known.executableName || other.executableName,
  commandName: known.commandName || other.commandName,
  containerId: known.containerId || other.containerId,
  cgroupPath: known.cgroupPath || other.cgroupPath,
  serviceName: known.serviceName || other.serviceName,
});
