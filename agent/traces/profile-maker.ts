/** From an interval of counted samples to profiles, one a source: frames named, clock converted, tables interned. */
import { hostname } from 'node:os';
import type { Pid, TraceId } from '../../common/base/brand.ts';
import { inSlices } from '../../common/base/slices.ts';
import { joinAttributes } from '../../common/profile/model/attributes.ts';
import { LinkTable } from '../../common/profile/model/link.ts';
import { emptyProfile, type Process, type Profile, type Sample } from '../../common/profile/model/profile.ts';
import type { ProfileType } from '../../common/profile/model/profile-type.ts';
import { Origin, PROFILE_TYPES } from '../records/records.gen.ts';
import { FrameTables } from './frame-tables.ts';
import type { Interval, SampleGroup } from './interval.ts';
import { linkOf } from './labels.ts';
import type { Stacks } from './stacks.ts';

export interface ProcessSource {
  get(pid: Pid, execId: number, startBoottimeNs: bigint): Process;
}

type NamedStacks = Pick<Stacks, 'resolve' | 'viewOf' | 'depthOf' | 'mapFrames' | 'frameCount' | 'frameAt'>;

export interface ProfileMakerOptions {
  /** Between two samples of CPU time; other sources have no period. */
  periodNs: number;
  /** By origin; those of the BPF programs unless given. */
  sources?: readonly Omit<ProfileType, 'period'>[];
  stacks: NamedStacks;
  processes: ProcessSource;
  /** Locations that are kept from one profile to the next. */
  maxLocations?: number;
  /** Nanoseconds to add to CLOCK_MONOTONIC for Unix time; read anew each time, so that it follows clock changes. */
  unixOffsetNs(): bigint;
}

const SLAB_WORDS = 16 << 10;
/** Attributes of all that is sampled here. */
export const HOST = { 'host.name': hostname(), 'host.arch': process.arch === 'x64' ? 'amd64' : process.arch };

export class ProfileMaker {
  readonly #options: ProfileMakerOptions;
  /** By source. */
  readonly #types: readonly ProfileType[];
  #frameTables: FrameTables;

  constructor(options: ProfileMakerOptions) {
    this.#options = options;
    const { sources = PROFILE_TYPES, periodNs } = options;
    this.#types = sources.map(({ sampleType, periodType }, origin) => {
      return { sampleType, periodType, period: origin === Origin.CPU ? BigInt(periodNs) : 0n };
    });
    this.#frameTables = new FrameTables(options.maxLocations);
  }

  /** The next profile makes its tables anew. */
  forget(): void {
    this.#frameTables = new FrameTables(this.#options.maxLocations);
  }

  /**
   * A profile for each source that has samples in the interval; they share their tables. Names what it can; never throws for
   * what it can't.
   */
  make(interval: Interval): Promise<Profile[]> {
    return this.#options.stacks.resolve(interval, () => this.#make(interval));
  }

  async #make(interval: Interval): Promise<Profile[]> {
    const { stacks, processes } = this.#options;
    const offsetNs = this.#options.unixOffsetNs();
    if (this.#frameTables.isFull) this.forget();
    const tables = new Tables(this.#frameTables, stacks, this.#types.length);
    await inSlices(interval.size, (i) => {
      const group = interval.group(i, offsetNs);
      const process = processes.get(group.pid, group.execId, group.startBoottimeNs);
      tables.addGroup(group, process);
    });
    if (interval.samples === 0) return [];
    const { profile } = tables;
    profile.host = HOST;
    profile.timeUnixNano = BigInt(interval.firstKtimeNs) + offsetNs;
    // one more than the last sample, so that every timestamp lies inside
    profile.durationNano = BigInt(interval.lastKtimeNs - interval.firstKtimeNs) + 1n;
    return tables.samples.flatMap((samples, origin) =>
      samples.length === 0 ? [] : [{ ...profile, type: this.#types[origin]!, samples }],
    );
  }
}

const NONE = -1;

/** Interns by identity first (of traces, frames and processes) and by content where that may repeat. */
class Tables {
  /** The tables of all; its samples are in {@link samples}. */
  readonly profile: Profile;
  /** By source. */
  readonly samples: readonly Sample[][];
  readonly #frames: FrameTables;
  readonly #stacks: NamedStacks;
  /** By view and trace. */
  readonly #stacksByTrace = new Map<number, Map<TraceId, number>>();
  /** By the number of the frame, or NONE: in one interval a frame says the same. */
  readonly #locations: Int32Array;
  /** By the hash of the locations, or the next number that is free. */
  readonly #stacksByHash = new Map<number, number>();
  readonly #links = new LinkTable();
  readonly #processes = new Map<Process, number>();
  /** Of a process, as its samples have it, by their attributes. */
  readonly #variants = new Map<Process, Map<string, Process>>();
  #slab = new Uint32Array(SLAB_WORDS);
  #slabUsed = 0;

  constructor(frames: FrameTables, stacks: NamedStacks, sources: number) {
    this.#stacks = stacks;
    this.samples = Array.from({ length: sources }, () => []);
    this.#locations = new Int32Array(stacks.frameCount).fill(NONE);
    const { mappings, functions, locations } = frames;
    this.#frames = frames;
    const { links } = this.#links;
    this.profile = { ...emptyProfile(), mappings, functions, locations, links };
  }

  addGroup(group: SampleGroup, process: Process): void {
    const sample: Sample = {
      stack: this.#stack(group),
      process: this.#process(this.#withAttributes(process, group.attributes)),
      tid: group.tid,
      threadName: group.threadName,
      cpu: group.cpu,
      value: group.value,
      timestamps: group.timestamps,
    };
    if (group.values) sample.values = group.values;
    if (group.span !== '') sample.link = this.#links.indexOf(linkOf(group.span));
    this.samples[group.origin]!.push(sample);
  }

  #stack(group: SampleGroup): number {
    const { trace } = group;
    const view = this.#stacks.viewOf(group);
    const byTrace = this.#stacksOf(view);
    const known = byTrace.get(trace);
    if (known !== undefined) return known;
    const locations = this.#room(this.#stacks.depthOf(trace, view));
    this.#stacks.mapFrames(trace, view, locations, this.#location);
    const index = this.#internStack(locations);
    byTrace.set(trace, index);
    return index;
  }

  #stacksOf(view: number): Map<TraceId, number> {
    let byTrace = this.#stacksByTrace.get(view);
    if (!byTrace) {
      byTrace = new Map();
      this.#stacksByTrace.set(view, byTrace);
    }
    return byTrace;
  }

  /** One function for all frames of all stacks. */
  readonly #location = (frame: number): number => {
    let location = this.#locations[frame] ?? NONE;
    if (location === NONE) {
      location = this.#frames.locationOf(this.#stacks.frameAt(frame));
      this.#locations[frame] = location;
    }
    return location;
  };

  /** A part of a large array: thousands of small ones cost an allocation outside the heap each. */
  #room(length: number): Uint32Array {
    if (this.#slabUsed + length > this.#slab.length) {
      this.#slab = new Uint32Array(Math.max(SLAB_WORDS, length));
      this.#slabUsed = 0;
    }
    this.#slabUsed += length;
    return this.#slab.subarray(this.#slabUsed - length, this.#slabUsed);
  }

  #internStack(locations: Uint32Array): number {
    if (locations.length === 0) return 0;
    const { stacks } = this.profile;
    let hash = locations.length;
    for (let i = 0; i < locations.length; i++) hash = (Math.imul(hash, 31) + locations[i]!) | 0;
    let known = this.#stacksByHash.get(hash);
    while (known !== undefined && !areEqual(stacks[known]!, locations)) {
      hash = (hash + 1) | 0;
      known = this.#stacksByHash.get(hash);
    }
    if (known !== undefined) return known;
    const index = stacks.push(locations) - 1;
    this.#stacksByHash.set(hash, index);
    return index;
  }

  /** Attributes of a sample are kept with its process. */
  #withAttributes(process: Process, attributes: string): Process {
    if (attributes === '') return process;
    let variants = this.#variants.get(process);
    if (!variants) {
      variants = new Map();
      this.#variants.set(process, variants);
    }
    let variant = variants.get(attributes);
    if (!variant) {
      variant = { ...process, attributes: joinAttributes(process.attributes ?? '', attributes) };
      variants.set(attributes, variant);
    }
    return variant;
  }

  #process(process: Process): number {
    const known = this.#processes.get(process);
    if (known !== undefined) return known;
    const index = this.profile.processes.push(process) - 1;
    this.#processes.set(process, index);
    return index;
  }
}

function areEqual(a: Uint32Array, b: Uint32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
