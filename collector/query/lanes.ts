/**
 * What threads did over time, in steps: lanes that are coloured by state. From three types of samples: a wait ends at its
 * timestamp and began its value before; a CPU sample is the time of its period before it; and the exact times of an interval say
 * what else there was in it, though not when: that is spread over what the others leave.
 */
import { readAttributes } from '../../common/profile/model/attributes.ts';
import { typeKey } from '../../common/profile/model/profile-type.ts';
import {
  OFF_CPU,
  THREAD_STATE,
  THREAD_STATES,
  THREAD_TIME,
} from '../../common/profile/model/thread-types.ts';
import { compileMasks } from '../store/matcher.ts';
import type { Series } from '../store/series.ts';
import type { SampleFilter } from '../store/store.ts';
import { CPU_TYPE } from '../store/stored-type.ts';
import { partsOf } from './levels.ts';
import { type PartStore, rowQuery, weightOf } from './rows.ts';
import { withLate } from './spread.ts';
import { type ThreadName, threadKey } from './threads.ts';

const RUNNING = 0;

/** A step of such length holds whole intervals. */
const LONG_STEP_MS = 5000;
const NS = 1e6;

/** Milliseconds since the Unix epoch. */
interface Piece {
  state: number;
  fromMs: number;
  toMs: number;
}

/** What was counted up to a time. */
interface Interval {
  endMs: number;
  /** By state, milliseconds. */
  ms: Float64Array;
}

export interface LaneThread extends ThreadName {
  /** Time in each of {@link THREAD_STATES}, nanoseconds: exact where it was counted. */
  totals: number[];
  /** Columns, in order: the step, the state, what of the step the thread was in it, from 0 to 1. */
  steps: number[];
  states: number[];
  shares: number[];
  /** How much of that share is known by the interval alone. */
  spread: number[];
}

interface Found {
  name: ThreadName;
  pieces: Piece[];
  intervals: Map<number, Interval>;
}

interface LaneOptions {
  steps: number;
  limit: number;
}

/** Those that did most; `threadCount`: how many there are. */
export async function readLanes(
  store: PartStore,
  filter: SampleFilter,
  { steps, limit }: LaneOptions,
): Promise<{ threadCount: number; threads: LaneThread[] }> {
  const { fromMs, toMs } = filter;
  const threads = await readThreads(store, filter, (toMs - fromMs) / steps >= LONG_STEP_MS);
  const counted = threads
    .map((found) => ({ ...found, totals: totalsOf(found, fromMs, toMs) }))
    .filter(({ totals }) => totals.some((ns) => ns > 0))
    .sort((a, b) => interest(b.totals) - interest(a.totals) || a.name.tid - b.name.tid);
  const lanes = counted.slice(0, limit).map(({ name, totals, pieces, intervals }) => {
    const lane = new Lane(fromMs, toMs, steps);
    for (const piece of inTurn(pieces)) lane.place(piece);
    for (const interval of intervals.values()) lane.spread(interval);
    return { ...name, totals, ...lane.columns() };
  });
  return { threadCount: counted.length, threads: lanes };
}

/** Who runs, or turns from one state to another. Who waits for one thing all the time is seldom what one looks for. */
const interest = (totals: readonly number[]): number =>
  totals.reduce((sum, ns) => sum + ns, 0) - Math.max(...totals) + totals[RUNNING]!;

/** `isLong`: single samples are not read where times were counted. */
async function readThreads(store: PartStore, filter: SampleFilter, isLong: boolean): Promise<Found[]> {
  const threads = new Map<string, Found>();
  const foundOf = (series: Series): Found => {
    const key = threadKey(series);
    const known = threads.get(key);
    if (known !== undefined) return known;
    const { process, pid, thread, tid, host } = series;
    const found = { name: { process, pid, thread, tid, host }, pieces: [], intervals: new Map() };
    threads.set(key, found);
    return found;
  };
  const late = withLate(filter);
  await eachRow(store, { ...late, type: THREAD_TIME }, (series, endMs, ns) => {
    const { intervals } = foundOf(series);
    const interval = intervals.get(endMs) ?? { endMs, ms: new Float64Array(THREAD_STATES.length) };
    interval.ms[stateOf(series)]! += ns / NS;
    intervals.set(endMs, interval);
  });
  if (isLong && threads.size > 0) return [...threads.values()];
  await eachRow(store, { ...late, type: OFF_CPU }, (series, endMs, ns) => {
    const state = stateOf(series);
    foundOf(series).pieces.push({ state, fromMs: endMs - ns / NS, toMs: endMs });
  });
  await eachRow(store, { ...filter, type: typeKey(CPU_TYPE) }, (series, endMs, count) => {
    const ms = (count * series.periodNanos) / NS;
    foundOf(series).pieces.push({ state: RUNNING, fromMs: endMs - ms, toMs: endMs });
  });
  return [...threads.values()];
}

const OTHER = THREAD_STATES.indexOf('blocked:other');

/** Of other agents, which say none, it is not known. */
function stateOf({ attributes }: Series): number {
  const state = (THREAD_STATES as readonly string[]).indexOf(
    readAttributes(attributes).get(THREAD_STATE) ?? '',
  );
  return state < 0 ? OTHER : state;
}

async function eachRow(
  store: PartStore,
  filter: SampleFilter,
  visit: (series: Series, timeMs: number, value: number) => void,
): Promise<void> {
  for (const part of await partsOf(store, filter)) {
    const masks = await compileMasks(filter.where, part);
    const rows = await part.rows(rowQuery(filter, masks, ['time', 'series']));
    const table = await part.series();
    for (let row = 0; row < rows.length; row++)
      visit(table.at(rows.series![row]!), part.startMs + rows.times![row]!, weightOf(rows, row));
  }
}

const overlap = (aFrom: number, aTo: number, bFrom: number, bTo: number): number =>
  Math.max(0, Math.min(aTo, bTo) - Math.max(aFrom, bFrom));

/** Of an interval that is shown in part, its part. Without intervals: what samples say. */
function totalsOf({ pieces, intervals }: Found, fromMs: number, toMs: number): number[] {
  const totals = new Array<number>(THREAD_STATES.length).fill(0);
  if (intervals.size === 0) {
    for (const piece of inTurn(pieces))
      totals[piece.state]! += NS * overlap(piece.fromMs, piece.toMs, fromMs, toMs);
    return totals;
  }
  for (const { endMs, ms } of intervals.values()) {
    const length = sum(ms);
    if (length === 0) continue;
    const share = overlap(endMs - length, endMs, fromMs, toMs) / length;
    for (let state = 0; state < totals.length; state++) totals[state]! += NS * share * ms[state]!;
  }
  return totals;
}

const sum = (values: Float64Array): number => values.reduce((total, value) => total + value, 0);

/** In the order of time. A wait that stands for others would reach into what was before it: it begins where that ends. */
function inTurn(pieces: readonly Piece[]): Piece[] {
  const sorted = [...pieces].sort((a, b) => a.toMs - b.toMs || a.fromMs - b.fromMs);
  let endMs = Number.NEGATIVE_INFINITY;
  return sorted.map((piece) => {
    const fromMs = Math.min(piece.toMs, Math.max(piece.fromMs, endMs));
    endMs = Math.max(endMs, piece.toMs);
    return { ...piece, fromMs };
  });
}

class Lane {
  readonly #fromMs: number;
  readonly #stepMs: number;
  readonly #steps: number;
  /** Milliseconds of each state in each step. */
  readonly #placed: Float64Array;
  readonly #spread: Float64Array;

  constructor(fromMs: number, toMs: number, steps: number) {
    this.#fromMs = fromMs;
    this.#steps = steps;
    this.#stepMs = (toMs - fromMs) / steps;
    this.#placed = new Float64Array(steps * THREAD_STATES.length);
    this.#spread = new Float64Array(steps * THREAD_STATES.length);
  }

  place({ state, fromMs, toMs }: Piece): void {
    this.#eachStep(fromMs, toMs, (step, ms) => {
      this.#placed[step * THREAD_STATES.length + state]! += ms;
    });
  }

  /** What samples do not tell of an interval, over the time that they leave of it. */
  spread({ endMs, ms }: Interval): void {
    const startMs = endMs - sum(ms);
    const missing = Float64Array.from(ms);
    let free = 0;
    const length = sum(ms);
    // of an interval that is shown in part, its part
    const share =
      overlap(startMs, endMs, this.#fromMs, this.#fromMs + this.#steps * this.#stepMs) / (length || 1);
    for (let state = 0; state < missing.length; state++) missing[state]! *= share;
    this.#eachStep(startMs, endMs, (step, stepMs) => {
      for (let state = 0; state < missing.length; state++)
        missing[state]! -= Math.min(this.#placed[step * THREAD_STATES.length + state]!, stepMs);
      free += this.#freeOf(step, stepMs);
    });
    for (let state = 0; state < missing.length; state++) missing[state] = Math.max(0, missing[state]!);
    const all = Math.max(free, sum(missing));
    if (free <= 0 || all === 0) return;
    this.#eachStep(startMs, endMs, (step, stepMs) => {
      const part = this.#freeOf(step, stepMs) / all;
      for (let state = 0; state < missing.length; state++)
        this.#spread[step * THREAD_STATES.length + state]! += missing[state]! * part;
    });
  }

  columns(): Pick<LaneThread, 'steps' | 'states' | 'shares' | 'spread'> {
    const columns: Pick<LaneThread, 'steps' | 'states' | 'shares' | 'spread'> = {
      ...{ steps: [], states: [], shares: [], spread: [] },
    };
    for (let i = 0; i < this.#placed.length; i++) {
      const share = (this.#placed[i]! + this.#spread[i]!) / this.#stepMs;
      // less is not seen
      if (share < 0.005) continue;
      columns.steps.push(Math.floor(i / THREAD_STATES.length));
      columns.states.push(i % THREAD_STATES.length);
      columns.shares.push(round(Math.min(1, share)));
      columns.spread.push(round(Math.min(1, this.#spread[i]! / this.#stepMs)));
    }
    return columns;
  }

  /** What is not placed of so much of a step. */
  #freeOf(step: number, ms: number): number {
    let placed = 0;
    for (let state = 0; state < THREAD_STATES.length; state++)
      placed += this.#placed[step * THREAD_STATES.length + state]!;
    return Math.max(0, ms - placed);
  }

  #eachStep(fromMs: number, toMs: number, visit: (step: number, ms: number) => void): void {
    const first = Math.max(0, Math.floor((fromMs - this.#fromMs) / this.#stepMs));
    const last = Math.min(this.#steps - 1, Math.floor((toMs - this.#fromMs) / this.#stepMs));
    for (let step = first; step <= last; step++) {
      const stepFrom = this.#fromMs + step * this.#stepMs;
      const ms = overlap(fromMs, toMs, stepFrom, stepFrom + this.#stepMs);
      if (ms > 0) visit(step, ms);
    }
  }
}

const round = (share: number): number => Math.round(share * 1000) / 1000;
