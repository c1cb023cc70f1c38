/** How the page writes figures of the type that is shown. */

import { findType, UnknownTypeError } from '../profile/model/profile-type.ts';
import { LOCK, OFF_CPU, THREAD_TIME, WALL_TIME } from '../profile/model/thread-types.ts';
import { type ValueFormatter, valueFormatter } from '../profile/model/value-format.ts';
import { formatCpus } from './format.ts';
import type { TypeAnswer } from './tree-answer.ts';

/** What files of earlier versions hold, and what is shown until an answer says otherwise. */
export const CPU_SAMPLES: TypeAnswer = {
  name: 'cpu',
  type: 'samples',
  unit: 'count',
  periodType: 'cpu',
  periodUnit: 'nanoseconds',
  kind: 'rate',
  shown: 'sum',
};

/** The type that is shown: what the address says, or else CPU samples, or else the first that there is. */
export function chooseType(wanted: string, types: readonly TypeAnswer[]): string {
  if (wanted !== '') return nameOf(wanted, types);
  return types.some(isCpu) ? CPU_SAMPLES.name : (types[0]?.name ?? CPU_SAMPLES.name);
}

/** A link may have any name that the API takes, such as `alloc_space`; what is not there stays as it is. */
function nameOf(wanted: string, types: readonly TypeAnswer[]): string {
  if (wanted === CPU_SAMPLES.name) return wanted;
  const profileTypes = types.map(({ type, unit, periodType, periodUnit }) => {
    return { sampleType: { type, unit }, periodType: { type: periodType, unit: periodUnit }, period: 0n };
  });
  try {
    return types[findType(profileTypes, wanted)]!.name;
  } catch (error) {
    if (!(error instanceof UnknownTypeError)) throw error;
    return wanted;
  }
}

export const isCpu = ({ name }: Pick<TypeAnswer, 'name'>): boolean => name === CPU_SAMPLES.name;

/** One for each type: it is asked for with every box. */
const FORMATTERS = new WeakMap<TypeAnswer, ValueFormatter>();

export function formatterOf(type: TypeAnswer): ValueFormatter {
  const known = FORMATTERS.get(type) ?? valueFormatter(type);
  FORMATTERS.set(type, known);
  return known;
}

/** What a level's figures are; '' where they are sums. */
export const levelNote = ({ shown }: TypeAnswer): string =>
  shown === 'last' ? ', the last value of each process' : '';

/** What is drawn over time: busy CPUs, threads, values of a level, or of others what there was each second. */
export interface TimeScale {
  /** Of a value of a step. */
  factor: number;
  /** As an axis writes it. */
  label(scaled: number): string;
  /** Distances of an axis's lines; undefined: round decimal numbers. */
  steps: readonly number[] | undefined;
  /** In a sentence. */
  of(scaled: number): string;
}

/** Of types whose values are time of threads: how many threads there are at a time, in words. */
const THREADS: Readonly<Record<string, string>> = {
  [OFF_CPU]: 'threads waiting',
  [LOCK]: 'threads waiting',
  [WALL_TIME]: 'threads running or waiting',
  [THREAD_TIME]: 'threads',
};

/** Whole KiB, MiB, … and their halves. */
const BINARY_STEPS = Array.from({ length: 60 }, (_, power) => 2 ** power);

/** @param nanosPerSample CPU time that a CPU sample stands for */
export function timeScale(type: TypeAnswer, stepMs: number, nanosPerSample: number): TimeScale {
  if (isCpu(type)) return atATime(nanosPerSample, stepMs, 'CPUs busy');
  const threads = THREADS[type.name];
  if (threads) return atATime(1, stepMs, threads);
  const { cell, of, perSecond } = formatterOf(type);
  const steps = type.unit === 'bytes' ? BINARY_STEPS : undefined;
  const orNone = (label: (value: number) => string) => (value: number) => (value === 0 ? '0' : label(value));
  if (type.kind === 'level') return { factor: 1, label: orNone(cell), steps, of };
  const name = type.unit === 'count' ? formatterOf(type).column : type.type;
  return {
    factor: 1000 / stepMs,
    label: orNone(perSecond),
    steps,
    of: (value) => `${perSecond(value)} of ${name}`,
  };
}

/** Time over time: a number of what passes it. */
const atATime = (nanosPerValue: number, stepMs: number, what: string): TimeScale => ({
  factor: nanosPerValue / (stepMs * 1e6),
  label: formatCpus,
  steps: undefined,
  of: (number) => `${formatCpus(number)} ${what}`,
});
