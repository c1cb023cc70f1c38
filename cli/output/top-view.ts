/** What `everyframe top` shows: the last seconds as rows, and a screen of text out of them. No I/O. */
import { printable } from '../../common/base/printable.ts';
import { processName, stackNames } from '../../common/profile/model/frame-name.ts';
import type { Profile, Sample } from '../../common/profile/model/profile.ts';
import { valueFormatter } from '../../common/profile/model/value-format.ts';
import { inclusiveShares, totalOf } from '../../common/profile/text/inclusive-shares.ts';
import { asCall, formatShare } from '../../common/profile/text/report-text.ts';
import type { Scope, Shown, TopState } from './top-state.ts';

interface Row {
  name: string;
  self: number;
  total: number;
  /** Of `total`, the samples that were in the kernel. */
  kernel: number;
}

export interface Screen extends Shown {
  /** At most as many as asked for, of at most `columns` characters. */
  lines: string[];
  /** Of the selected row, -1 where there is none. */
  selectedLine: number;
}

/** As many as fit, the most needed first. */
const KEYS = [
  '? help',
  'q quit',
  'enter in',
  'bksp out',
  's sort',
  '/ filter',
  'i PID',
  'p f t views',
  'space pause',
];
const HELP = `keys of everyframe top

  p  processes        f  functions        t  stacks
  enter, l, →         into the selected row: a process's functions,
                      a function's stacks, a stack's frames
  backspace, h, ←     out again
  s                   sort by self, total, kernel, name
  /                   filter rows by text; escape clears it
  i                   only the process with this ID; empty: all
  space               pause and resume
  j k ↑ ↓ page g G    move                q  quit

self    share of samples in the function itself
total   also in what it calls
kernel  of total, the part in the kernel

any key goes back`.split('\n');
const HEADER_LINES = 2;
const FOOTER_LINES = 1;

/** `note` is a line of the log, for which the keys make room. */
export function renderTop(
  profile: Profile,
  state: TopState,
  columns: number,
  lines: number,
  note = '',
): Screen {
  const samples = totalOf(profile);
  const share = (count: number): string => formatShare(samples === 0 ? 0 : count / samples).padStart(7);
  const rows = rowsFor(profile, state);
  const names = rows.map(({ name }) => name);
  const height = Math.max(0, lines - HEADER_LINES - FOOTER_LINES);
  const selectedRow = findSelected(state, names);
  const first = Math.max(0, Math.min(selectedRow - (height >> 1), rows.length - height));
  const body = rows
    .slice(first, first + height)
    .map((row) => `${share(row.self)} ${share(row.total)} ${share(row.kernel)}  ${row.name}`);
  const filled = [...body, ...new Array<string>(Math.max(0, height - body.length)).fill('')];
  const foot = note || footLine(`${rows.length === 0 ? 0 : selectedRow + 1} of ${rows.length}`, columns);
  const all = state.isHelp
    ? HELP
    : [headLine(profile, samples, state.paused, columns), titleLine(state), ...filled, foot];
  return {
    lines: all.slice(0, lines).map((line) => Array.from(printable(line)).slice(0, columns).join('')),
    selectedLine: body.length === 0 || state.isHelp ? -1 : HEADER_LINES + selectedRow - first,
    ...{ names, selectedRow, height },
  };
}

/** Where it stands, and keys as far as there is room: none is cut. */
function footLine(place: string, columns: number): string {
  let line = place;
  for (const key of KEYS) if (line.length + 2 + key.length <= columns) line += `  ${key}`;
  return line;
}

function headLine(profile: Profile, samples: number, isPaused: boolean, columns: number): string {
  const kernel = profile.samples.reduce(
    (sum, one) => sum + (isKernel(profile, one.stack) ? one.value : 0),
    0,
  );
  const share = (count: number): string => formatShare(samples === 0 ? 0 : count / samples).padStart(7);
  const seconds = Math.round(Number(profile.durationNano) / 1e9);
  const paused = isPaused ? '  (paused)' : '';
  const { of, amount } = valueFormatter(profile.type.sampleType);
  const line = `everyframe top: ${of(samples)} in ${seconds} s, user${share(samples - kernel)}, kernel${share(kernel)}${paused}`;
  if (line.length <= columns) return line;
  return `${amount(samples)} in ${seconds} s, kernel${share(kernel)}${paused}`;
}

function titleLine({ view, sort, filter, isTyping, pid, scopes }: TopState): string {
  const what = view === 'frames' ? 'frames, innermost first' : `${view}, by ${sort}`;
  const inside = scopes.map((scope) => `  in ${scope.view === 'pid' ? 'PID ' : ''}${scope.name}`).join('');
  const asked = pid === undefined ? '' : `  PID: ${pid}_`;
  const typed = isTyping || filter !== '' ? `  filter: ${filter}${isTyping ? '_' : ''}` : '';
  return `   self   total  kernel  ${what}${typed}${asked}${inside}`;
}

const findSelected = ({ selected }: TopState, names: readonly string[]): number => {
  const found = selected.name === '' ? -1 : names.indexOf(selected.name);
  return found >= 0 ? found : Math.max(0, Math.min(selected.row, names.length - 1));
};

function rowsFor(profile: Profile, { view, sort, filter, scopes }: TopState): Row[] {
  const inScope = scopes.map((scope) => matcherOf(profile, scope));
  const samples = profile.samples.filter((sample) => inScope.every((matches) => matches(sample)));
  const selected = { ...profile, samples };
  const wanted = filter.toLowerCase();
  const rows = view === 'frames' ? framesOf(profile, selected) : rowsOf(selected, view);
  const found = rows.filter(({ name }) => name.toLowerCase().includes(wanted));
  if (view === 'frames') return found;
  const byName = (a: Row, b: Row): number => (a.name < b.name ? -1 : 1);
  if (sort === 'name') return found.sort(byName);
  return found.sort((a, b) => b[sort] - a[sort] || b.total - a.total || byName(a, b));
}

function matcherOf(profile: Profile, { view, name }: Scope): (sample: Sample) => boolean {
  if (view === 'pid') return ({ process }) => profile.processes[process]!.pid === Number(name);
  if (view === 'processes') return (sample) => processRow(profile, sample) === name;
  const stacks = new Map<number, boolean>();
  const matches =
    view === 'functions' ? (stack: number) => stackNames(profile, stack, asCall).includes(name) : () => true;
  return (sample) => {
    if (view === 'stacks') return stackRow(profile, sample) === name;
    const known = stacks.get(sample.stack) ?? matches(sample.stack);
    stacks.set(sample.stack, known);
    return known;
  };
}

function rowsOf(profile: Profile, view: 'processes' | 'functions' | 'stacks'): Row[] {
  if (view === 'functions') return withKernel(profile);
  const rows = new Map<string, Row>();
  for (const sample of profile.samples) {
    const { stack, value } = sample;
    const name = view === 'processes' ? processRow(profile, sample) : stackRow(profile, sample);
    const row = rows.get(name) ?? { name, self: 0, total: 0, kernel: 0 };
    row.self += value;
    row.total += value;
    if (isKernel(profile, stack)) row.kernel += value;
    rows.set(name, row);
  }
  return [...rows.values()];
}

/** One stack's frames, each with what its function uses in the whole window. */
function framesOf(profile: Profile, selected: Profile): Row[] {
  const stack = selected.samples[0]?.stack;
  if (stack === undefined) return [];
  const known = new Map(withKernel(profile).map((row) => [row.name, row]));
  return stackNames(profile, stack, asCall)
    .reverse()
    .map((name) => known.get(name)!);
}

const processRow = (profile: Profile, { process }: Sample): string =>
  `${processName(profile, process)} (${profile.processes[process]!.pid})`;

/** Innermost first, because the end of a long line is cut. */
const stackRow = (profile: Profile, { process, stack }: Sample): string =>
  `${processName(profile, process)}: ${stackNames(profile, stack).reverse().join(' < ')}`;

const isKernel = (profile: Profile, stack: number): boolean => {
  const leaf = profile.stacks[stack]![0];
  return leaf !== undefined && profile.locations[leaf]!.frameType === 'kernel';
};

/** A function's samples that ended in the kernel: its own system calls and faults among them. */
function withKernel(profile: Profile): Row[] {
  const inKernel = { ...profile, samples: profile.samples.filter(({ stack }) => isKernel(profile, stack)) };
  const kernel = new Map(inclusiveShares(inKernel, 'function').map(({ name, total }) => [name, total]));
  return inclusiveShares(profile, 'function').map((row) => ({ ...row, kernel: kernel.get(row.name) ?? 0 }));
}
