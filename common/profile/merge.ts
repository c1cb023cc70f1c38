/** Several profiles as one: tables interned by content, equal samples joined. */
import { intern } from './intern.ts';
import {
  emptyProfile,
  type Func,
  type Location,
  type Mapping,
  type Process,
  type Profile,
  type Sample,
} from './profile.ts';

/**
 * Leaves the given profiles as they are; the result may share entries with them.
 * @throws Error for profiles of different kinds: their counts can't be added.
 */
export function mergeProfiles(profiles: readonly Profile[]): Profile {
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
  #isEmpty = true;

  constructor() {
    const { mappings, functions, locations, processes } = this.profile;
    this.#mappings.set(mappingKey(mappings[0]!), 0);
    this.#functions.set(functionKey(functions[0]!), 0);
    this.#locations.set(locationKey(locations[0]!), 0);
    this.#processes.set(processKey(processes[0]!), 0);
    this.#stacks.set('', 0);
  }

  add(other: Profile): void {
    this.#widen(other);
    const { profile } = this;
    // only what a stack leads to: tables may hold what other profiles need
    const locations = new Map<number, number>();
    const locationOf = (old: number): number => {
      const index = locations.get(old) ?? this.#addLocation(other, old);
      locations.set(old, index);
      return index;
    };
    const stacks = other.stacks.map((stack) => {
      const moved = stack.map(locationOf);
      return intern(this.#stacks, moved.join(), profile.stacks, () => moved);
    });
    const processes = other.processes.map((p) => this.#addProcess(p));
    for (const sample of other.samples)
      this.#addSample(sample, stacks[sample.stack]!, processes[sample.process]!);
  }

  #addLocation(other: Profile, old: number): number {
    const { profile } = this;
    const location = other.locations[old]!;
    const mapping = other.mappings[location.mapping]!;
    const lines = location.lines.map((line) => {
      const func = other.functions[line.func]!;
      return { ...line, func: intern(this.#functions, functionKey(func), profile.functions, () => func) };
    });
    const index = intern(this.#mappings, mappingKey(mapping), profile.mappings, () => mapping);
    const moved = { ...location, mapping: index, lines };
    return intern(this.#locations, locationKey(moved), profile.locations, () => moved);
  }

  /** What one of the profiles did not know of a process yet is taken from the other. */
  #addProcess(process: Process): number {
    const { processes } = this.profile;
    const index = intern(this.#processes, processKey(process), processes, () => process);
    const known = processes[index]!;
    if (known !== process && index > 0) processes[index] = complete(known, process);
    return index;
  }

  #addSample(sample: Sample, stack: number, process: number): void {
    // counts without times would be lost among those with: an entry has a time for each event, or none
    const isTimed = sample.timestamps.length > 0;
    const key = `${stack}/${process}/${sample.tid}/${sample.cpu}/${isTimed}/${sample.threadName}`;
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

  /** The window that holds all; the attributes that all have. */
  #widen(other: Profile): void {
    const { profile } = this;
    const { timeUnixNano, durationNano, sampleType, periodType, period } = other;
    const isFirst = this.#isEmpty;
    this.#isEmpty = false;
    if (isFirst || (profile.samples.length === 0 && other.samples.length > 0)) {
      Object.assign(profile, { sampleType, periodType, period, host: { ...other.host } });
    } else if (other.samples.length > 0) {
      if (kindOf(profile) !== kindOf(other))
        throw new Error(`profiles of ${kindOf(profile)} and of ${kindOf(other)} can't become one`);
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

const kindOf = ({ sampleType, periodType, period }: Profile): string =>
  `${sampleType.type}/${sampleType.unit} every ${period} ${periodType.type}/${periodType.unit}`;

const mappingKey = (m: Mapping): string =>
  [m.memoryStart, m.memoryLimit, m.fileOffset, m.gnuBuildId, m.goBuildId, m.fileId, m.filename].join('\0');

const functionKey = (f: Func): string => [f.name, f.systemName, f.filename, f.startLine].join('\0');

const locationKey = (l: Location): string =>
  `${l.mapping}/${l.address}/${l.frameType}/${l.lines.map((line) => `${line.func}:${line.line}:${line.column}`).join()}/${l.generated ?? ''}`;

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
