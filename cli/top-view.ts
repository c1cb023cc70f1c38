/** What `everyframe top` shows: the last seconds as rows, and a screen of text out of them. No I/O. */
import { processName, stackNames } from '../common/profile/frame-name.ts';
import type { Profile } from '../common/profile/profile.ts';
import { countSamples, formatShare, residencies } from '../common/profile/residency.ts';

export interface TopState {
  view: 'functions' | 'processes' | 'stacks';
  sort: 'self' | 'total';
  filter: string;
  /** While the filter is being typed, its keys are text. */
  isTyping: boolean;
  /** First row in sight. */
  scroll: number;
  paused: boolean;
}

export const initialState = (): TopState => ({
  ...{ view: 'functions', sort: 'self', filter: '', isTyping: false, scroll: 0, paused: false },
});

/** @returns the state after a key, or undefined where it ends the program */
export function onKey(state: TopState, key: string): TopState | undefined {
  if (key === '\x03') return undefined;
  if (state.isTyping) return onText(state, key);
  switch (key) {
    case 'q':
      return undefined;
    case 'f':
      return { ...state, view: 'functions', scroll: 0 };
    case 'p':
      return { ...state, view: 'processes', scroll: 0 };
    case 't':
      return { ...state, view: 'stacks', scroll: 0 };
    case 's':
      return { ...state, sort: state.sort === 'self' ? 'total' : 'self', scroll: 0 };
    case '/':
      return { ...state, isTyping: true, scroll: 0 };
    case ' ':
      return { ...state, paused: !state.paused };
    case '\x1b':
      return { ...state, filter: '', scroll: 0 };
    case '\x1b[B':
    case 'j':
      return { ...state, scroll: state.scroll + 1 };
    case '\x1b[A':
    case 'k':
      return { ...state, scroll: Math.max(0, state.scroll - 1) };
    default:
      return state;
  }
}

function onText(state: TopState, key: string): TopState {
  if (key === '\r' || key === '\n') return { ...state, isTyping: false };
  if (key === '\x1b') return { ...state, isTyping: false, filter: '' };
  if (key === '\x7f' || key === '\b') return { ...state, filter: state.filter.slice(0, -1) };
  return /^[\x20-\x7e]+$/.test(key) ? { ...state, filter: state.filter + key } : state;
}

interface Row {
  name: string;
  self: number;
  total: number;
  /** Of `total`, the samples that were in the kernel. */
  kernel: number;
}

const HELP = 'q quit f func p proc t stacks s sort / filter space pause j k scroll';

/** A screen of at most `lines` lines of at most `columns` characters. */
export function renderTop(profile: Profile, state: TopState, columns: number, lines: number): string[] {
  const samples = countSamples(profile);
  const all = rowsOf(profile, state.view).sort((a, b) => b[state.sort] - a[state.sort] || b.total - a.total);
  const wanted = state.filter.toLowerCase();
  const rows = all.filter(({ name }) => name.toLowerCase().includes(wanted));
  const height = Math.max(0, lines - 4);
  const first = Math.min(state.scroll, Math.max(0, rows.length - height));
  const kernel = profile.samples.reduce(
    (sum, one) => sum + (isKernel(profile, one.stack) ? one.count : 0),
    0,
  );
  const share = (count: number): string => formatShare(samples === 0 ? 0 : count / samples).padStart(7);
  const seconds = Math.round(Number(profile.durationNano) / 1e9);
  const head = `everyframe top: ${samples} samples in ${seconds} s, user${share(samples - kernel)}, kernel${share(kernel)}${state.paused ? '  (paused)' : ''}`;
  const filter =
    state.isTyping || state.filter !== '' ? `filter: ${state.filter}${state.isTyping ? '_' : ''}` : '';
  const title = `   self   total  kernel  ${state.view}, by ${state.sort}  ${filter}`;
  const body = rows
    .slice(first, first + height)
    .map((row) => `${share(row.self)} ${share(row.total)} ${share(row.kernel)}  ${printable(row.name)}`);
  const foot = `${Math.min(rows.length, first + body.length)} of ${rows.length}  ${HELP}`;
  const filled = [...body, ...new Array<string>(Math.max(0, height - body.length)).fill('')];
  return [head, title, ...filled, foot].slice(0, lines).map((line) => line.slice(0, columns));
}

function rowsOf(profile: Profile, view: TopState['view']): Row[] {
  if (view === 'functions') return withKernel(profile, residencies(profile, 'function'));
  const rows = new Map<string, Row>();
  for (const { stack, process, count } of profile.samples) {
    const process1 = processName(profile, process);
    const { pid } = profile.processes[process]!;
    const name = view === 'processes' ? `${process1} (${pid})` : stackLine(profile, process1, stack);
    const row = rows.get(name) ?? { name, self: 0, total: 0, kernel: 0 };
    row.self += count;
    row.total += count;
    if (isKernel(profile, stack)) row.kernel += count;
    rows.set(name, row);
  }
  return [...rows.values()];
}

/** Innermost first, because the end of a long line is cut. */
const stackLine = (profile: Profile, process: string, stack: number): string =>
  `${process}: ${stackNames(profile, stack).reverse().join(' < ')}`;

const isKernel = (profile: Profile, stack: number): boolean => {
  const leaf = profile.stacks[stack]![0];
  return leaf !== undefined && profile.locations[leaf]!.frameType === 'kernel';
};

/** A function's samples that ended in the kernel: its own system calls and faults among them. */
function withKernel(profile: Profile, rows: readonly { name: string; self: number; total: number }[]): Row[] {
  const inKernel = { ...profile, samples: profile.samples.filter(({ stack }) => isKernel(profile, stack)) };
  const kernel = new Map(residencies(inKernel, 'function').map(({ name, total }) => [name, total]));
  return rows.map((row) => ({ ...row, kernel: kernel.get(row.name) ?? 0 }));
}

/** Names come from strangers: no control character of theirs reaches the terminal. */
const printable = (name: string): string => name.replace(/\p{C}/gu, '?');
