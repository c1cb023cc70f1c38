/** What keys do to `everyframe top`. No I/O. */

export type TopView = 'processes' | 'functions' | 'stacks' | 'frames';

/** What was entered: only samples of that process, with that function, of that stack, of the process with that ID. */
export interface Scope {
  view: TopView | 'pid';
  name: string;
}

const SORTS = ['self', 'total', 'kernel', 'name'] as const;

export interface TopState {
  view: TopView;
  sort: (typeof SORTS)[number];
  filter: string;
  /** While the filter is being typed, its keys are text. */
  isTyping: boolean;
  /** A process ID that is being typed; undefined: none is. */
  pid: string | undefined;
  isHelp: boolean;
  /** The row by its name, since rows move; by its number where that name is gone. */
  selected: { name: string; row: number };
  /** Outermost first. */
  scopes: readonly Scope[];
  paused: boolean;
}

/** What is on the screen when a key comes. */
export interface Shown {
  /** Of all rows, those out of sight too. */
  names: readonly string[];
  selectedRow: number;
  /** Rows in sight. */
  height: number;
}

/** Linux hands out at most 4,194,304. */
const MAX_PID_DIGITS = 7;
const FIRST = { name: '', row: 0 };

export const initialState = (): TopState => ({
  ...{ view: 'functions', sort: 'self', filter: '', isTyping: false, paused: false },
  ...{ pid: undefined, isHelp: false },
  ...{ selected: FIRST, scopes: [] },
});

const VIEWS: Record<string, TopView> = { p: 'processes', f: 'functions', t: 'stacks' };
/** What is seen inside of a row. */
const INSIDE: Partial<Record<TopView, TopView>> = {
  processes: 'functions',
  functions: 'stacks',
  stacks: 'frames',
};

/** @returns the state after a key, or undefined where it ends the program */
export function onKey(state: TopState, key: string, shown: Shown): TopState | undefined {
  if (key === '\x03') return undefined;
  if (state.isHelp) return key === 'q' ? undefined : { ...state, isHelp: false };
  if (state.isTyping) return onText(state, key);
  if (state.pid !== undefined) return onPid(state, key);
  switch (key) {
    case 'q':
      return undefined;
    case 'p':
    case 'f':
    case 't':
      return { ...enterView(state, VIEWS[key]!), scopes: scopesOf(state, VIEWS[key]!) };
    case 's':
      return { ...state, sort: SORTS[(SORTS.indexOf(state.sort) + 1) % SORTS.length]!, selected: FIRST };
    case '/':
      return { ...state, isTyping: true, selected: FIRST };
    case '?':
      return { ...state, isHelp: true };
    case 'i':
      return { ...state, pid: '' };
    case ' ':
      return { ...state, paused: !state.paused };
    case '\r':
    case '\n':
    case '\x1b[C':
    case 'l':
      return goIn(state, shown);
    case '\x7f':
    case '\b':
    case '\x1b[D':
    case 'h':
      return goOut(state);
    case '\x1b':
      return state.filter === '' ? goOut(state) : { ...state, filter: '', selected: FIRST };
    default: {
      const row = rowAfter(key, shown);
      return row === undefined ? state : { ...state, selected: { name: shown.names[row] ?? '', row } };
    }
  }
}

/** Undefined for a key that moves nothing. */
function rowAfter(key: string, { names, selectedRow, height }: Shown): number | undefined {
  const last = Math.max(0, names.length - 1);
  const moves: Record<string, number> = {
    ...{ '\x1b[B': selectedRow + 1, j: selectedRow + 1, '\x1b[A': selectedRow - 1, k: selectedRow - 1 },
    ...{ '\x1b[6~': selectedRow + height, '\x1b[5~': selectedRow - height },
    ...{ '\x1b[H': 0, g: 0, '\x1b[F': last, G: last },
  };
  const row = moves[key];
  return row === undefined ? undefined : Math.max(0, Math.min(last, row));
}

const enterView = (state: TopState, view: TopView): TopState => ({
  ...state,
  ...{ view, filter: '', selected: FIRST },
});

/** Another view of the same samples; inside of one of its own rows there is nothing to choose from. */
const scopesOf = ({ scopes }: TopState, view: TopView): readonly Scope[] => {
  const own = scopes.findIndex((scope) => scope.view === view || scope.view === 'stacks');
  return own < 0 ? scopes : scopes.slice(0, own);
};

function goIn(state: TopState, { names, selectedRow }: Shown): TopState {
  const inside = INSIDE[state.view];
  const name = names[selectedRow];
  if (inside === undefined || name === undefined) return state;
  return { ...enterView(state, inside), scopes: [...state.scopes, { view: state.view, name }] };
}

/** Back to the row that was entered. */
function goOut(state: TopState): TopState {
  const left = state.scopes.at(-1);
  if (left === undefined) return state;
  if (left.view === 'pid') return { ...state, scopes: state.scopes.slice(0, -1), selected: FIRST };
  const selected = { name: left.name, row: 0 };
  return { ...enterView(state, left.view), scopes: state.scopes.slice(0, -1), selected };
}

/** A process ID, by which all views are filtered; an empty one ends that. */
function onPid(state: TopState, key: string): TopState {
  const pid = state.pid ?? '';
  if (key === '\x1b') return { ...state, pid: undefined };
  if (key === '\x7f' || key === '\b') return { ...state, pid: pid.slice(0, -1) };
  if (key !== '\r' && key !== '\n')
    return /^\d$/.test(key) && pid.length < MAX_PID_DIGITS ? { ...state, pid: pid + key } : state;
  const others = state.scopes.filter(({ view }) => view !== 'pid');
  const scopes = pid === '' ? others : [{ view: 'pid' as const, name: pid }, ...others];
  return { ...state, pid: undefined, scopes, selected: FIRST };
}

function onText(state: TopState, key: string): TopState {
  if (key === '\r' || key === '\n') return { ...state, isTyping: false };
  if (key === '\x1b') return { ...state, isTyping: false, filter: '' };
  if (key === '\x7f' || key === '\b') return { ...state, filter: state.filter.slice(0, -1) };
  return /^\P{C}+$/u.test(key) ? { ...state, filter: state.filter + key } : state;
}
