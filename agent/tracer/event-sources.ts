/**
 * Events of --event: for each an object with the program that is attached, which nobody loads otherwise; and for each type
 * of program what takes the stacks, which is loaded anew with each runtime. docs/events.md
 */

import { CannotProfile } from '../base/cannot-profile.ts';
import type { Native, NativeBpfObject } from '../base/native.ts';
import { ALLOCATOR_PROGRAMS } from '../events/allocators.ts';
import type { EventField } from '../events/event-field.ts';
import type { MmapSpec, TracepointSpec } from '../events/event-spec.ts';
import type { EventSourcesOptions, SourceSpec } from '../events/event-types.ts';
import type { ProbeSite, RefusedSite, SiteFields } from '../events/probe-site.ts';
import { whatThereIs, whyNotThere } from '../events/tracepoint-names.ts';
import { Context, EF_MAX_EVENTS, EVENT_CALLER, EventTotal } from '../records/records.gen.ts';
import { type EventFields, encodeEvent } from './event-config.ts';
import type { OpenObject } from './open-object.ts';
import { PerfEvents } from './perf-events.ts';
import { loaded, putInSlot } from './program-slots.ts';
import type { SamplerPart } from './sampler-part.ts';
import type { Follower } from './samplers.ts';
import { attachSites } from './user-probes.ts';

/** What has happened since the start; exact, whatever was sampled. */
export interface EventTotals {
  spec: SourceSpec;
  events: number;
  /** The sum of the events' values. */
  values: number;
  samples: number;
}

/** Of the arguments of one probe. */
const MAX_LAYOUTS = 32;
const TOTALS_OF_EVENT = Object.keys(EventTotal).length;

/** What is attached, what it jumps to, and by way of which map. */
interface Programs {
  object: string;
  attached: readonly string[];
  taker: string;
  takers: string;
}
const OF_EVENTS = 'events.bpf.o';
const PERF: Programs = {
  ...{ object: OF_EVENTS, attached: ['on_perf_event'], taker: 'take_perf_event', takers: 'perf_takers' },
};
const PROBE: Programs = {
  ...{ object: OF_EVENTS, attached: ['on_probe'], taker: 'take_probe', takers: 'probe_takers' },
};
const POINT: Programs = {
  ...{ object: OF_EVENTS, attached: ['on_tracepoint'], taker: 'take_tracepoint', takers: 'point_takers' },
};
const MMAP: Programs = { ...POINT, attached: ['on_mmap'] };
const ALLOCATION: Programs = {
  ...{ object: 'allocations.bpf.o', attached: ALLOCATOR_PROGRAMS },
  ...{ taker: 'take_allocation', takers: 'alloc_takers' },
};
const RETURN: Programs = {
  ...{ object: 'returns.bpf.o', attached: ['on_entry', 'on_return'] },
  ...{ taker: 'take_return', takers: 'return_takers' },
};
const PROGRAMS: Readonly<Record<SourceSpec['kind'], Programs>> = {
  perf: PERF,
  uprobe: PROBE,
  uretprobe: RETURN,
  usdt: PROBE,
  tracepoint: POINT,
  malloc: ALLOCATION,
  mmap: MMAP,
};

const SYSTEM_CALLS = { category: 'raw_syscalls', name: 'sys_enter' };

/** Addresses of a function of the kernel; undefined where they are not known. */
export type FindCode = (name: string) => { start: bigint; end: bigint } | undefined;

/** Of all types, for their figures: what is attached, without a runtime, or what takes the stacks. */
export const openEventPrograms = (
  open: OpenObject,
  runtimes: readonly SamplerPart[],
  share: readonly NativeBpfObject[],
): NativeBpfObject[] =>
  [[PERF, PROBE, POINT, MMAP], [ALLOCATION], [RETURN]].map((kinds) =>
    openPrograms(open, kinds, runtimes, share),
  );

/** Those that cost the verifier most. */
const OF_KERNEL: EventField = { kind: 'member', argument: 0, offset: 8, bytes: 4, isSigned: true };
const OF_USER: EventField = { ...OF_KERNEL, kind: 'memory', base: 0, index: 1, scale: 8 };

/** Of one object. */
function openPrograms(
  open: OpenObject,
  kinds: readonly Programs[],
  runtimes: readonly SamplerPart[],
  share: readonly NativeBpfObject[],
): NativeBpfObject {
  const programs = kinds.flatMap(({ attached, taker }) => (runtimes.length > 0 ? [taker] : attached));
  const event = encodeEvent(0, 1, { value: OF_KERNEL, filter: OF_USER, comparison: '>' });
  return open(kinds[0]!.object, { programs, context: Context.EVENT, runtimes, event, share });
}

interface Source {
  spec: SourceSpec;
  object: NativeBpfObject;
  /** Of events of the perf subsystem. */
  perCpu: PerfEvents | undefined;
  /** Of probes whose numbers are elsewhere from place to place: the same program for each of them. */
  byFields: Map<string, NativeBpfObject>;
}

export class EventSources implements Follower {
  readonly #native: Native;
  readonly #open: OpenObject;
  readonly #base: NativeBpfObject;
  readonly #options: EventSourcesOptions;
  readonly #uprobeMulti: boolean;
  /** Totals at the time when they began to count. */
  #before: EventTotals[] = [];
  #sources: readonly Source[] = [];
  readonly #takers = new Map<Programs, NativeBpfObject>();

  /** Loads, but attaches nothing; throws what the kernel says, and {@link CannotProfile}. */
  constructor(native: Native, open: OpenObject, base: NativeBpfObject, options: EventSourcesOptions) {
    if (options.events.length > EF_MAX_EVENTS)
      throw new CannotProfile(
        `${options.events.length} events were asked for: ${EF_MAX_EVENTS} can be sampled at a time`,
      );
    if (options.events.filter(({ kind }) => kind === 'malloc').length > 1)
      throw new CannotProfile('malloc was asked for twice: give one event of it');
    this.#native = native;
    this.#open = open;
    this.#base = base;
    this.#options = options;
    this.#uprobeMulti = native.hasUprobeMulti();
    const sources: Source[] = [];
    for (const spec of options.events) {
      const object = this.#load(spec, sources.length, [
        base,
        ...sources.slice(0, 1).map((one) => one.object),
      ]);
      sources.push({ spec, object, perCpu: this.#perCpu(spec, object), byFields: new Map() });
    }
    this.#sources = sources;
  }

  #load(
    spec: SourceSpec,
    number: number,
    share: readonly NativeBpfObject[],
    fields: EventFields = settingsOf(this.#native, spec),
  ): NativeBpfObject {
    const event = encodeEvent(number, this.#options.budget, fields);
    const { object: file, attached } = PROGRAMS[spec.kind];
    const object = this.#open(file, {
      programs: attached,
      context: Context.EVENT,
      event,
      share,
    });
    object.loadSync();
    return object;
  }

  #perCpu(spec: SourceSpec, object: NativeBpfObject): PerfEvents | undefined {
    if (spec.kind !== 'perf') return undefined;
    const { type, config, isHardware } = spec;
    const event = {
      ...{ type, config, period: isHardware ? 0 : 1, frequency: this.#options.samplesPerSecond },
      includeIdle: this.#options.includeIdle,
    };
    const program = object.programFd(PERF.attached[0]!);
    return new PerfEvents(this.#native, {
      spreadNs: 0,
      open: (cpu) => this.#native.perfOpen(cpu, event, program),
    });
  }

  /** By their numbers. */
  get specs(): readonly SourceSpec[] {
    return this.#options.events;
  }

  async follow(runtimes: readonly SamplerPart[], share: NativeBpfObject): Promise<void> {
    // one object for each kind of program
    const byPrograms = new Map(this.#sources.map(({ spec, object }) => [PROGRAMS[spec.kind], object]));
    for (const [programs, source] of byPrograms) {
      const opened = this.#open(programs.object, {
        programs: [programs.taker],
        context: Context.EVENT,
        runtimes,
        share: [share, source],
      });
      const wider = await loaded(opened);
      putInSlot(this.#native, wider.mapFd(programs.takers), 0, wider.programFd(programs.taker));
      this.#takers.get(programs)?.close();
      this.#takers.set(programs, wider);
    }
  }

  /** From now on events are counted, those in user code once their sites are known. Throws {@link CannotProfile}. */
  async start(cpus: number[], findCode: FindCode): Promise<void> {
    for (const [number, { spec, object, perCpu }] of this.#sources.entries()) {
      if (spec.kind === 'tracepoint' || spec.kind === 'mmap')
        this.#attachTracepoint(number, object, spec, findCode);
      if (!perCpu) continue;
      await perCpu.follow(cpus).catch((error: NodeJS.ErrnoException) => {
        throw new CannotProfile(whyNoEvent(spec.text, error));
      });
      await perCpu.enable();
    }
  }

  #attachTracepoint(
    number: number,
    object: NativeBpfObject,
    spec: TracepointSpec | MmapSpec,
    findCode: FindCode,
  ): void {
    const { category, name } = spec.kind === 'mmap' ? SYSTEM_CALLS : spec;
    this.#noteCaller(number, object, findCode(`bpf_trace_run${this.#native.tracepointFields(name).length}`));
    try {
      object.attachRawTracepoint(PROGRAMS[spec.kind].attached[0]!, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      throw noTracepoint(category, name, whatThereIs({ category, name }, this.#native.tracepointNames()));
    }
  }

  /** Stacks begin behind what calls BPF, by the number of arguments. */
  #noteCaller(number: number, object: NativeBpfObject, code: ReturnType<FindCode>): void {
    if (!code) return;
    const [key, value] = [Buffer.alloc(4), Buffer.alloc(EVENT_CALLER.bytes)];
    key.writeUInt32LE(number);
    value.writeBigUInt64LE(code.start, EVENT_CALLER.start);
    value.writeBigUInt64LE(code.end, EVENT_CALLER.end);
    this.#native.mapUpdate(object.mapFd('event_callers'), key, value, 0);
  }

  /** CPUs that came and went. */
  async followCpus(cpus: number[]): Promise<void> {
    for (const { perCpu } of this.#sources) await perCpu?.follow(cpus).catch(() => {});
  }

  /**
   * Sets the probes of an event where they are now, in place of those that it had; returns those that the kernel refuses.
   * Throws what it says otherwise, and {@link CannotProfile}.
   */
  setSites(number: number, sites: readonly ProbeSite[]): RefusedSite[] {
    const source = this.#sources[number];
    if (!source) return [];
    source.object.detach();
    closeAll(source.byFields);
    const objects = sites.map(({ fields }) => this.#objectWith(number, source, fields));
    return [...new Set(objects)].flatMap((object) =>
      attachSites(
        object,
        sites.filter((_, i) => objects[i] === object),
        this.#uprobeMulti,
      ),
    );
  }

  #objectWith(number: number, { spec, object, byFields }: Source, fields?: SiteFields): NativeBpfObject {
    if (!fields) return object;
    const key = JSON.stringify(fields);
    const known = byFields.get(key);
    if (known) return known;
    if (byFields.size >= MAX_LAYOUTS)
      throw new CannotProfile(
        `${spec.text}: its arguments are in more than ${MAX_LAYOUTS} kinds of places from one to the next`,
      );
    const filter = 'filter' in spec ? spec.filter : undefined;
    const loaded = this.#load(spec, number, [this.#base, object], {
      ...fields,
      ...(filter && { comparison: filter.comparison, operand: filter.operand }),
    });
    byFields.set(key, loaded);
    return loaded;
  }

  /** The map of allocations that are not freed; undefined without `malloc`. */
  get liveHeapFd(): number | undefined {
    return this.#sources.find(({ spec }) => spec.kind === 'malloc')?.object.mapFd('live_heap');
  }

  /** Totals are counted from now on. */
  begin(): void {
    this.#before = this.#sums();
  }

  totals(): EventTotals[] {
    return this.#sums().map((total, i) => {
      const before = this.#before[i];
      if (!before) return total;
      const [events, values] = [total.events - before.events, total.values - before.values];
      return { ...total, events, values, samples: total.samples - before.samples };
    });
  }

  #sums(): EventTotals[] {
    const first = this.#sources[0];
    if (!first) return [];
    const sums = this.#native.sumPerCpu(
      first.object.mapFd('event_totals'),
      0,
      this.#sources.length * TOTALS_OF_EVENT,
    );
    return this.#sources.map(({ spec }, i) => ({
      spec,
      events: sums[i * TOTALS_OF_EVENT + EventTotal.EVENTS] ?? 0,
      values: sums[i * TOTALS_OF_EVENT + EventTotal.VALUES] ?? 0,
      samples: sums[i * TOTALS_OF_EVENT + EventTotal.SAMPLES] ?? 0,
    }));
  }

  /** Nothing is counted any more. */
  stop(): void {
    for (const { object, perCpu, byFields } of this.#sources) {
      perCpu?.close();
      object.detach();
      closeAll(byFields);
    }
  }

  close(): void {
    this.stop();
    for (const { object } of this.#sources) object.close();
    for (const taker of this.#takers.values()) taker.close();
    this.#takers.clear();
    this.#sources = [];
  }
}

function closeAll(objects: Map<string, NativeBpfObject>): void {
  for (const object of objects.values()) object.close();
  objects.clear();
}

function settingsOf(native: Native, spec: SourceSpec): EventFields {
  if (spec.kind === 'malloc') return { scale: spec.everyBytes };
  if (spec.kind !== 'tracepoint') return {};
  const { category, name, value, filter } = spec;
  const why = whyNotThere(spec);
  if (why !== undefined) throw noTracepoint(category, name, why);
  const find = (field: string): EventField => findField(native, spec, field);
  return {
    ...(value !== undefined && { value: find(value) }),
    ...(filter && { filter: find(filter.field), comparison: filter.comparison, operand: filter.operand }),
  };
}

function findField(native: Native, { category, name }: TracepointSpec, field: string): EventField {
  const found = native.tracepointField(name, field);
  if (found) return { ...found, kind: found.offset < 0 ? 'argument' : 'member' };
  const known = native.tracepointFields(name);
  if (known.length === 0)
    throw noTracepoint(category, name, whatThereIs({ category, name }, native.tracepointNames()));
  throw new CannotProfile(
    `tracepoint:${category}:${name} has no field ${field}: give one of ${known.join(', ')}, or FIELD.MEMBER of a struct`,
  );
}

const noTracepoint = (category: string, name: string, why: string): CannotProfile =>
  new CannotProfile(`there is no tracepoint ${category}:${name} on this kernel: ${why}`);

/** Errors of perf_event_open(2) that say what the machine lacks. */
function whyNoEvent(name: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT' || code === 'EOPNOTSUPP' || code === 'ENODEV')
    return `this machine does not count ${name}: its processor has no such counter, or, as in many virtual machines, shows none`;
  return `${name} can't be sampled: ${message}`;
}
