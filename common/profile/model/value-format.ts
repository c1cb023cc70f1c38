/**
 * How values of a profile type are written: one formatter for each unit. Axes, tooltips, tables and texts ask it, so that nobody
 * else has to know that a value may be a number of samples, a time or a size.
 */
import { printable } from '../../base/printable.ts';
import { WORDS } from './thread-types.ts';

export interface ValueFormatter {
  /** Head of a column of cells: `samples`, `waiting`, `alloc_space`. */
  readonly column: string;
  /** With its unit: `1,234 samples`, `7.05 s`, `327 MiB`. */
  amount(value: number): string;
  /** Under a head that says what is counted: `1,234`, `7.05 s`. */
  cell(value: number): string;
  /** With what it is an amount of: `1,234 samples`, `7.05 s of waiting`. */
  of(value: number): string;
  /** A value for each second, as an axis of time writes it: `1,234/s`, `2.5 s/s`, `12 MiB/s`. */
  perSecond(value: number): string;
}

/** As OTLP and pprof name it: `samples/count`, `off_cpu/nanoseconds`. */
interface NamedUnit {
  type: string;
  unit: string;
}

/** @param valueType any that a sender may have made up: an unknown unit is written behind its number */
export function valueFormatter(valueType: NamedUnit): ValueFormatter {
  const [type, unit] = [printable(valueType.type), printable(valueType.unit)];
  if (unit === 'count' || unit === '') return countFormatter(type || 'values');
  const cell = UNITS.get(unit) ?? ((value: number): string => `${number(value)} ${unit}`);
  const word = WORDS[`${type}/${unit}`] ?? type;
  return {
    column: word || unit,
    amount: cell,
    cell,
    of: (value) => (word === '' ? cell(value) : `${cell(value)} of ${word}`),
    perSecond: (value) => `${cell(value)}/s`,
  };
}

/** A type that is not a word, as a probe's place, has events, or what the values of its events add up to. */
function countFormatter(type: string): ValueFormatter {
  if (HAS_VALUE.test(type))
    return {
      ...{ column: 'value', amount: number, cell: number },
      of: (value) => `${number(value)} of ${type}`,
      perSecond: (value) => `${number(value)}/s`,
    };
  if (!/^[\w -]+$/.test(type))
    return { ...countFormatter('events'), of: (value) => `${number(value)} events of ${type}` };
  const noun = type.endsWith('s') ? type.slice(0, -1) : type;
  const amount = (value: number): string => `${number(value)} ${value === 1 ? noun : `${noun}s`}`;
  return {
    column: `${noun}s`,
    amount,
    cell: number,
    of: amount,
    perSecond: (value) => `${number(value)}/s`,
  };
}

/** --event names a number of the event as its value. */
const HAS_VALUE = /,value=\w/;

/** Units of time in nanoseconds, and of size in bytes, as senders write them. */
const UNITS: ReadonlyMap<string, (value: number) => string> = new Map([
  ...['nanoseconds', 'ns'].map((unit) => [unit, formatTime] as const),
  ...['microseconds', 'us'].map((unit) => [unit, (value: number) => formatTime(value * 1e3)] as const),
  ...['milliseconds', 'ms'].map((unit) => [unit, (value: number) => formatTime(value * 1e6)] as const),
  ...['seconds', 's'].map((unit) => [unit, (value: number) => formatTime(value * 1e9)] as const),
  ...['bytes', 'By'].map((unit) => [unit, formatSize] as const),
  ['kilobytes', (value) => formatSize(value * 2 ** 10)],
  ['megabytes', (value) => formatSize(value * 2 ** 20)],
]);

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const SMALL = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 });

/** Three digits that matter; no zeros behind them. */
function digits(value: number): string {
  const size = Math.abs(value);
  return String(Number(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2)));
}

const number = (value: number): string =>
  Number.isInteger(value) || Math.abs(value) >= 100
    ? WHOLE.format(value)
    : Math.abs(value) < 1
      ? SMALL.format(value)
      : digits(value);

/** Three digits up to a minute, two units above. */
function formatTime(nanos: number): string {
  const size = Math.abs(nanos);
  if (size < 1e3) return `${number(nanos)} ns`;
  if (size < 999_500) return `${digits(nanos / 1e3)} µs`;
  if (size < 999_500_000) return `${digits(nanos / 1e6)} ms`;
  if (size < 60e9) return `${digits(nanos / 1e9)} s`;
  const seconds = Math.round(size / 1e9);
  const sign = nanos < 0 ? '−' : '';
  if (seconds < 3600) return `${sign}${twoUnits(seconds, 60, 'min', 's')}`;
  if (seconds < 86_400) return `${sign}${twoUnits(Math.round(seconds / 60), 60, 'h', 'min')}`;
  return `${sign}${twoUnits(Math.round(seconds / 3600), 24, 'd', 'h')}`;
}

function twoUnits(value: number, base: number, large: string, small: string): string {
  const rest = value % base;
  const whole = `${WHOLE.format(Math.floor(value / base))} ${large}`;
  return rest === 0 ? whole : `${whole} ${rest} ${small}`;
}

const SIZES = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

function formatSize(bytes: number): string {
  const size = Math.abs(bytes);
  let power = size < 1 ? 0 : Math.min(SIZES.length - 1, Math.floor(Math.log2(size) / 10));
  // what would be written as 1,024 of a unit is 1 of the next
  if (power < SIZES.length - 1 && Math.round(size / 1024 ** power) >= 1024) power++;
  const value = bytes / 1024 ** power;
  return `${power === 0 ? number(value) : digits(value)} ${power === 0 && value === 1 ? 'byte' : SIZES[power]}`;
}
