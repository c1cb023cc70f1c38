/**
 * Chrome's trace events, which chrome://tracing, Perfetto and speedscope open: a frame that stays on the stack
 * from one sample to the next is one complete event (`"ph":"X"`). A CPU sample fills one period from its own time on,
 * or from the end of the one before where they are closer; a time that was waited ends at its timestamp, when it was known.
 * Samples without times follow each other.
 */

import { isObject, type Json, list, natural, object, readOwnHeader, text, toBytes } from '../model/json.ts';
import { type Profile, valueAt } from '../model/profile.ts';
import { frameOfName, markKernel, type Owner, ProfileBuilder } from '../model/profile-builder.ts';
import { countsSamples, cpuType, MAX_VALUE, measureOf, typeName } from '../model/profile-type.ts';
import type { ReadBudget } from '../model/read-limits.ts';
import { ROOT } from '../model/stack-tree.ts';
import type { FrameList } from './frame-list.ts';
import { readMark, splitThreads, type ThreadGroup } from './thread-groups.ts';
import { CallTree, newCpuBuilder } from './v8-cpu-profile.ts';

/** A gap of up to half a period is the timer's, not the thread's. */
const MAX_GAP_PERIODS = 0.5;
/** Linux hands out at most 2^22. */
const FIRST_FREE_TID = 2 ** 22 + 1;

/** @throws Error for values that are not times and no counts: the format has no others */
export function writeChromeTrace(profile: Profile): Uint8Array {
  const { unit } = measureOf(profile.type);
  if (unit !== 'nanoseconds' && unit !== 'count')
    throw new Error(
      `a Chrome trace shows times, and these values are ${typeName(profile.type)}: use .pb.gz or .speedscope.json, or another type`,
    );
  const { frames, threads, header } = splitThreads(profile);
  const traceEvents: Json[] = [];
  const rows = new Rows();
  for (const group of threads) {
    const row = rows.claim(group);
    const { process, thread, mark } = group;
    const args = { name: thread || process, everyframe: mark };
    traceEvents.push({ ph: 'M', ...row, name: 'process_name', args: { name: process } });
    traceEvents.push({ ph: 'M', ...row, name: 'thread_name', args });
    new RowWriter(profile, frames, row, traceEvents).write(group);
  }
  return toBytes({ displayTimeUnit: 'ms', otherData: { everyframe: header }, traceEvents });
}

/**
 * Threads without an ID, threads that changed their name, and processes that share a PID over time must not fall into
 * one row, where their events would overlap: such a one gets an ID that no thread of its process has.
 */
class Rows {
  readonly #taken = new Set<string>();
  #next = FIRST_FREE_TID;

  claim({ pid, tid }: ThreadGroup): { pid: number; tid: number } {
    const isFree = tid > 0 && !this.#taken.has(`${pid}/${tid}`);
    const row = { pid, tid: isFree ? tid : this.#next++ };
    this.#taken.add(`${row.pid}/${row.tid}`);
    return row;
  }
}

interface Slot {
  at: number;
  length: number;
  stack: number;
}

/** Slots of time in nanoseconds since the profile's start, none over another. */
function slotsOf(profile: Profile, { samples }: ThreadGroup): Slot[] {
  const { scale } = measureOf(profile.type);
  const isSampled = countsSamples(profile.type);
  const start = profile.timeUnixNano;
  const slots: Slot[] = samples.flatMap((sample) =>
    sample.timestamps.length === 0
      ? [{ at: 0, length: sample.value * scale, stack: sample.stack }]
      : sample.timestamps.map((time, event) => {
          const length = valueAt(sample, event) * scale;
          const at = Number(time - start) - (isSampled ? 0 : length);
          return { at: Math.max(0, at), length, stack: sample.stack };
        }),
  );
  slots.sort((a, b) => a.at - b.at);
  const smallestGap = isSampled ? scale * MAX_GAP_PERIODS : 0;
  let end = 0;
  for (const slot of slots) {
    if (slot.at < end || slot.at - end < smallestGap) slot.at = end;
    end = slot.at + slot.length;
  }
  return slots;
}

class RowWriter {
  readonly #profile: Profile;
  readonly #frames: FrameList;
  readonly #row: Json;
  readonly #out: Json[];
  readonly #open: { frame: number; event: Json; start: number }[] = [];

  constructor(profile: Profile, frames: FrameList, row: Json, out: Json[]) {
    this.#profile = profile;
    this.#frames = frames;
    this.#row = row;
    this.#out = out;
  }

  write(group: ThreadGroup): void {
    let end = 0;
    for (const { at, length, stack } of slotsOf(this.#profile, group)) {
      const frames = this.#frames.ofStack(stack);
      if (at > end) this.#closeDownTo(0, end);
      let same = 0;
      while (same < this.#open.length && this.#open[same]!.frame === frames[same]) same++;
      this.#closeDownTo(same, at);
      for (const frame of frames.slice(same)) this.#push(frame, at);
      end = at + length;
    }
    this.#closeDownTo(0, end);
  }

  #push(frame: number, start: number): void {
    const { name, file, line, frameType, column } = this.#frames.frames[frame]!;
    const args = { ...(file !== '' && { file }), ...(line > 0 && { line }), ...(column > 0 && { column }) };
    // speedscope shows them, even if there are none
    const hasArgs = Object.keys(args).length > 0;
    const event = { ph: 'X', ...this.#row, cat: frameType || 'unknown', ts: start / 1000, dur: 0 };
    this.#open.push({
      frame,
      event: { ...event, name: markKernel(name, frameType), ...(hasArgs && { args }) },
      start,
    });
    this.#out.push(this.#open.at(-1)!.event);
  }

  #closeDownTo(depth: number, end: number): void {
    for (const { event, start } of this.#open.splice(depth)) event['dur'] = (end - start) / 1000;
  }
}

export const isChromeTrace = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.some((event) => typeof object(event)['ph'] === 'string')
    : isObject(value) && Array.isArray(value['traceEvents']);

interface Row {
  process: string;
  thread: string;
  own: Owner | undefined;
  pid: number;
  tid: number;
  /** In nanoseconds; the order among equals is that of the file. */
  events: { start: number; end: number; location: number }[];
  begun: { start: number; location: number }[];
}

/**
 * Of a trace with samples of V8's profiler these: its other events are the same time again.
 *
 * @throws Error where the file contradicts its format
 */
export function readChromeTrace(value: unknown, budget?: ReadBudget): Profile {
  const events = list(Array.isArray(value) ? value : object(value)['traceEvents']).map(object);
  return events.some(isChunk) ? readChunks(events, budget) : readEvents(value, events, budget);
}

const isChunk = ({ ph, name }: Json): boolean => ph === 'P' && name === 'ProfileChunk';

interface SampledV8 {
  tree: CallTree;
  owner: Owner;
  samples: unknown[];
  timeDeltas: unknown[];
}

/** The chunks of one V8 belong to the thread whose profile began with their ID. */
function readChunks(events: readonly Json[], budget?: ReadBudget): Profile {
  const builder = newCpuBuilder(budget);
  const rows = new Map<string, Row>();
  const begun = new Map<string, Owner>();
  const sampled = new Map<string, SampledV8>();
  const keyOf = ({ pid, id }: Json): string => `${pid}/${id}`;
  const named = events.filter(({ ph }) => ph === 'M' || ph === 'P');
  for (const event of named) readEvent(builder, rows, event);
  const threadOf = ({ pid, tid }: Json): Owner => ownerOf(rows.get(`${pid}/${tid}`)!);
  for (const event of named) if (event['name'] === 'Profile') begun.set(keyOf(event), threadOf(event));
  for (const chunk of named.filter(isChunk).sort((a, b) => Number(a['ts']) - Number(b['ts']))) {
    const key = keyOf(chunk);
    const one = sampled.get(key) ?? {
      ...{ tree: new CallTree(builder), owner: begun.get(key) ?? threadOf(chunk) },
      ...{ samples: [], timeDeltas: [] },
    };
    sampled.set(key, one);
    const { cpuProfile, timeDeltas } = object(object(chunk['args'])['data']);
    const { nodes, samples } = object(cpuProfile);
    for (const node of list(nodes).map(object)) one.tree.add(node['id'], node['callFrame'], node['parent']);
    for (const sample of list(samples)) one.samples.push(sample);
    for (const delta of list(timeDeltas)) one.timeDeltas.push(delta);
  }
  for (const { tree, owner, samples, timeDeltas } of sampled.values())
    tree.addSamples(owner, samples, timeDeltas);
  return builder.profile;
}

function readEvents(value: unknown, events: readonly Json[], budget?: ReadBudget): Profile {
  const builder = new ProfileBuilder(budget);
  const isOwn = readOwnHeader(builder.profile, object(object(value)['otherData'])['everyframe']);
  if (!isOwn) {
    builder.profile.type = { ...cpuType(1n), sampleType: { type: 'wall', unit: 'nanoseconds' } };
  }
  const rows = new Map<string, Row>();
  for (const event of events) readEvent(builder, rows, event);
  for (const row of rows.values()) addRow(builder, row);
  return builder.profile;
}

function readEvent(builder: ProfileBuilder, rows: Map<string, Row>, event: Json): void {
  const [pid, tid] = [natural(event['pid']), natural(event['tid'])];
  const key = `${event['pid']}/${event['tid']}`;
  const row = rows.get(key) ?? { process: '', thread: '', own: undefined, pid, tid, events: [], begun: [] };
  rows.set(key, row);
  const args = object(event['args']);
  const start = Math.round(Number(event['ts']) * 1000);
  switch (event['ph']) {
    case 'M':
      if (event['name'] === 'process_name') row.process = text(args['name']);
      if (event['name'] === 'thread_name') row.thread = text(args['name']);
      row.own = readMark(args['everyframe']) ?? row.own;
      break;
    case 'X': {
      const end = Math.round((Number(event['ts']) + Number(event['dur'] ?? 0)) * 1000);
      if (end >= start && Number.isFinite(end - start))
        row.events.push({ start, end, location: readLocation(builder, event) });
      break;
    }
    case 'B':
      row.begun.push({ start, location: readLocation(builder, event) });
      break;
    case 'E': {
      const begun = row.begun.pop();
      if (begun && start >= begun.start && Number.isFinite(start - begun.start))
        row.events.push({ ...begun, end: start });
      break;
    }
  }
}

function readLocation(builder: ProfileBuilder, event: Json): number {
  const { file, line, column } = object(event['args']);
  const { name, frameType } = frameOfName(text(event['name']));
  return builder.location({
    name,
    frameType,
    file: text(file),
    line: natural(line),
    column: natural(column),
  });
}

function ownerOf(row: Row): Owner {
  const { process, pid, tid, thread } = row.own ?? row;
  return { process: process || thread || `pid ${row.pid}`, pid, tid, thread };
}

/** Time that no inner event takes belongs to the stack of those that are open. */
function addRow(builder: ProfileBuilder, row: Row): void {
  // an outer event begins no later and ends no earlier; sort() keeps the file's order among equals
  const isBegun = row.events.some(
    ({ end }, i) => i > 0 && row.events[i - 1]!.end < end && row.events[i - 1]!.start >= row.events[i]!.start,
  );
  const events = (isBegun ? row.events.toReversed() : row.events).sort(
    (a, b) => a.start - b.start || b.end - a.end,
  );
  const owner = ownerOf(row);
  const { scale } = measureOf(builder.profile.type);
  const open: { end: number; node: number }[] = [];
  let since = 0;
  const pass = (until: number): void => {
    const value = Math.round((until - since) / scale);
    if (open.length > 0 && value > 0 && value <= MAX_VALUE)
      builder.add(builder.stackAt(open.at(-1)!.node), owner, value);
    since = Math.max(since, until);
  };
  const closeUntil = (time: number): void => {
    while (open.length > 0 && open.at(-1)!.end <= time) {
      pass(open.at(-1)!.end);
      open.pop();
    }
  };
  for (const { start, end, location } of events) {
    closeUntil(start);
    pass(start);
    since = start;
    const caller = open.at(-1);
    const node = builder.enter(caller?.node ?? ROOT, location);
    open.push({ end: Math.min(end, caller?.end ?? end), node });
  }
  closeUntil(Number.POSITIVE_INFINITY);
}
