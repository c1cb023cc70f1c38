/**
 * The in-memory profile that every format is read into and written from.
 *
 * Tables refer to each other by index, as OTLP's dictionary does; entry 0 of every table is its zero value
 * ("", no mapping, no function, the empty stack, …), so index 0 always means "none". Tables hold no
 * duplicates. Stacks are leaf first: kernel frames, then user frames, the root last.
 *
 * A profile has values of one type, as in OTLP. A file or a recording that has several is a {@link ProfileSet}.
 */
import type { KnownFrameType } from './frame-types.ts';
import { countsSamples, cpuType, isCpuType, MAX_VALUE, type ProfileType } from './profile-type.ts';

/** `profile.frame.type` of OpenTelemetry's semantic conventions; '' only in entry 0 or when unknown. */
export type FrameType = '' | KnownFrameType;

/** Attribute of a location: {@link Location.functionStart}. */
export const FUNCTION_START = 'everyframe.function.start';
/** Attribute of a location: {@link Location.generated}. */
export const GENERATED_PLACE = 'source_map.generated';

export interface Mapping {
  /** ELF virtual address range, 0 where unknown. */
  memoryStart: bigint;
  memoryLimit: bigint;
  fileOffset: bigint;
  /** Path or base name of the file, `[vdso]`, `vmlinux`, or a kernel module's name. */
  filename: string;
  /** GNU build ID in hex, '' if none. */
  gnuBuildId: string;
  /** Go build ID, '' if none. */
  goBuildId: string;
  /** File ID as 32 hex digits, '' if none. */
  fileId: string;
}

export interface Func {
  name: string;
  /** The mangled name, '' where it equals `name`. */
  systemName: string;
  filename: string;
  /** First line of the function, 0 if unknown. */
  startLine: number;
}

export interface Line {
  /** Index into `functions`. */
  func: number;
  line: number;
  column: number;
}

export interface Location {
  /** Index into `mappings`. */
  mapping: number;
  /** ELF virtual address; kernel: offset in vmlinux's or the module's image; 0 where there is none. */
  address: bigint;
  frameType: FrameType;
  /** Innermost inlined function first; empty where the frame has no name. */
  lines: Line[];
  /** Without lines: where the function of the file begins in which the address lies, ELF virtual address. */
  functionStart?: number;
  /**
   * Where the code that ran stands, if `lines` are those of the source that it was made from: `file:line:column` of each
   * such line, separated by ", ".
   */
  generated?: string;
}

/** Who was sampled: one entry per execution of a process (an exec starts a new one). */
export interface Process {
  pid: number;
  parentPid: number;
  /** Base name of the executable, or the kernel thread's name. */
  executableName: string;
  executablePath: string;
  /** Name of the main thread when first seen. */
  commandName: string;
  containerId: string;
  cgroupPath: string;
  serviceName: string;
  /** Start of the process in nanoseconds since the Unix epoch, 0n if unknown. */
  startUnixNano: bigint;
  /** What else its sender said of it, as `attributesText` writes it; missing where it said nothing. */
  attributes?: string;
}

/** The span of a distributed trace in whose service a thread ran; '' for an ID that is not known. */
export interface Link {
  /** 32 hex digits, in lower case. */
  traceId: string;
  /** 16 hex digits, in lower case. */
  spanId: string;
}

export const NO_LINK: Link = { traceId: '', spanId: '' };

/** All events that share (stack, process, thread, CPU, link), told apart by time. */
export interface Sample {
  /** Index into `stacks`. */
  stack: number;
  /** Index into `processes`. */
  process: number;
  tid: number;
  threadName: string;
  /** Logical CPU, -1 if unknown. */
  cpu: number;
  /**
   * What its events add up to, in the unit of the profile's sample type; above 0. Exact to 2^53, beyond it the nearest
   * double: one part in 10^16.
   */
  value: number;
  /** One per event, nanoseconds since the Unix epoch; empty where the source kept none. */
  timestamps: bigint[];
  /** What each event adds to `value`, as many as timestamps; missing where each adds 1, and where there are none. */
  values?: number[];
  /** Index into `links`; missing where there is none, as in nearly all. */
  link?: number;
}

export interface Profile {
  /** Window of the profile, nanoseconds since the Unix epoch. */
  timeUnixNano: bigint;
  durationNano: bigint;
  /** What the values of its samples are. */
  type: ProfileType;
  /** Host attributes: `host.name`, `host.arch`, … */
  host: Record<string, string>;
  mappings: Mapping[];
  functions: Func[];
  locations: Location[];
  /** Location indices, leaf first. */
  stacks: Uint32Array[];
  processes: Process[];
  links: Link[];
  samples: Sample[];
}

/** The profiles of one file or recording, each of a type of its own. */
export interface ProfileSet {
  /** At least one. They share their tables: `mappings`, `functions`, `locations`, `stacks`, `processes` and `links` are the same arrays. */
  profiles: readonly Profile[];
  /** Index of the one that is shown unless another is asked for. */
  main: number;
}

/** What a file was read as. */
export interface ProfileFile extends ProfileSet {
  /** Why samples were left out → how many. */
  problems: ReadonlyMap<string, number>;
}

/** The main one has CPU samples, or comes last of those that have samples: pprof's order is numbers, then sizes or times. */
export function setOf(profiles: readonly Profile[]): ProfileSet {
  const isSampled = ({ samples }: Profile): boolean => samples.length > 0;
  const cpu = profiles.findIndex((profile) => isCpuType(profile.type) && isSampled(profile));
  return { profiles, main: cpu >= 0 ? cpu : Math.max(0, profiles.findLastIndex(isSampled)) };
}

export const mainOf = ({ profiles, main }: ProfileSet): Profile => profiles[main]!;

/** How many events there are, as far as that is known: what sizes or times add up to is one a sample. */
export const countEvents = ({ type, samples }: Pick<Profile, 'type' | 'samples'>): number =>
  samples.reduce(
    (sum, { value, timestamps }) => sum + (timestamps.length || (countsSamples(type) ? value : 1)),
    0,
  );

/** Of an event of a sample with timestamps. */
export const valueAt = ({ values }: Sample, event: number): number => (values ? values[event]! : 1);

/** Adds events to a sample that has times, as they have, or none. */
export function addEvents(
  into: Sample,
  { value, timestamps, values }: Pick<Sample, 'value' | 'timestamps' | 'values'>,
): void {
  if (timestamps.length > 0 && (into.values || values)) {
    into.values ??= into.timestamps.map(() => 1);
    for (let i = 0; i < timestamps.length; i++) into.values.push(values ? values[i]! : 1);
  }
  for (const timestamp of timestamps) into.timestamps.push(timestamp);
  into.value = Math.min(MAX_VALUE, into.value + value);
}

export const emptyMapping = (): Mapping => ({
  memoryStart: 0n,
  memoryLimit: 0n,
  fileOffset: 0n,
  filename: '',
  gnuBuildId: '',
  goBuildId: '',
  fileId: '',
});

export const emptyProcess = (): Process => ({
  pid: 0,
  parentPid: 0,
  executableName: '',
  executablePath: '',
  commandName: '',
  containerId: '',
  cgroupPath: '',
  serviceName: '',
  startUnixNano: 0n,
});

/** A profile of CPU samples with only the zero entries. */
export function emptyProfile(): Profile {
  return {
    timeUnixNano: 0n,
    durationNano: 0n,
    type: cpuType(0n),
    host: {},
    mappings: [emptyMapping()],
    functions: [{ name: '', systemName: '', filename: '', startLine: 0 }],
    locations: [{ mapping: 0, address: 0n, frameType: '', lines: [] }],
    stacks: [new Uint32Array(0)],
    processes: [emptyProcess()],
    links: [NO_LINK],
    samples: [],
  };
}
