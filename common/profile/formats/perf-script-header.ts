/**
 * The line with which `perf script` begins an event: any of `comm pid/tid [cpu] misc time: period event: the rest`. Which of
 * them there are is chosen with -F and written nowhere, and a thread's name may hold spaces, end in a number, or look like
 * any of the others: so the fields of a file are those that fit all of its first events.
 */

interface Fields {
  comm: boolean;
  /** `tid`, or `pid/tid`. */
  ids: boolean;
  /** As `[001]`, or with --latency as `  1`. */
  cpu: 'none' | 'brackets' | 'bare';
  time: boolean;
  period: boolean;
  event: boolean;
}

export interface EventHeader {
  comm: string;
  pid: number;
  tid: number;
  cpu: number;
  /** Nanoseconds since boot, -1n where the file has no times. */
  time: bigint;
  /** Whether process and thread are told apart. */
  hasBoth: boolean;
  /** As `-e` names it, '' where the file does not say. */
  event: string;
  /** How many of the events one stands for. */
  period: number;
  /** What follows the fields: the innermost frame where there are no call chains, or a tracepoint's own text. */
  rest: string;
}

/** The kernel keeps 15 bytes of a thread's name. */
const COMM = '(?<comm>\\S(?:.{0,30}\\S)?)';
const IDS = '\\s+(?:(?<pid>-?\\d+)/)?(?<tid>-?\\d+)';
const CPU = { none: '', brackets: '\\s+\\[(?<cpu>\\d{1,5})\\]', bare: ' +(?<cpu>[ \\d]{2}\\d)(?= )' };
const TIME = '\\s+(?<seconds>\\d{1,12})\\.(?<fraction>\\d{6}|\\d{9}):';
/** Ten characters wide, which tells it from an ID; behind a time nothing else can stand there. */
const WIDE_PERIOD = ' (?=[ \\d]{10} )(?<period> *\\d+)';
const PERIOD = '\\s+(?<period>\\d+)';
const EVENT = '\\s+(?<event>[^\\s:](?:[^:]|:(?=\\S))*):(?=\\s|$)';

function patternOf({ comm, ids, cpu, time, period, event }: Fields): RegExp {
  const parts = [
    // a field without one before it begins the line
    comm ? ` ${COMM}` : '(?=\\s)',
    ids ? IDS : '',
    CPU[cpu],
    cpu === 'none' || !time ? '' : '(?:\\s+[A-Za-z.]{1,5})?',
    time ? TIME : '',
    period ? (time ? PERIOD : WIDE_PERIOD) : '',
    event ? EVENT : '',
  ];
  return new RegExp(`^${parts.join('')}(?<rest>\\s.*|)$`, 's');
}

const NO_YES = [false, true];

/** All that there can be, those with most fields first; IDs before a name, which may be anything. */
const CANDIDATES: readonly { pattern: RegExp }[] = NO_YES.flatMap((comm) =>
  NO_YES.flatMap((ids) =>
    (['none', 'brackets', 'bare'] as const).flatMap((cpu) =>
      NO_YES.flatMap((time) =>
        NO_YES.flatMap((period) => NO_YES.map((event) => ({ comm, ids, cpu, time, period, event }))),
      ),
    ),
  ),
)
  .map((fields) => ({ pattern: patternOf(fields), score: scoreOf(fields) }))
  .sort((a, b) => b.score - a.score);

function scoreOf({ comm, ids, cpu, time, period, event }: Fields): number {
  const cpuScore = { none: 0, brackets: 2, bare: 0.5 }[cpu];
  return (comm ? 1 : 0) + (ids ? 2 : 0) + cpuScore + (time ? 2 : 0) + (period ? 2 : 0) + (event ? 1.5 : 0);
}

/** Of lines: others than events may stand between them. */
const MIN_FITTING = 0.9;

/** All fields end before that; a tracepoint's text may be longer. */
const MAX_LENGTH = 2048;

/** With one space before it, which every field has before itself. */
const spaced = (line: string): string => ` ${line.trimStart().slice(0, MAX_LENGTH)}`;

/** Reads the events of a file that begins with such lines; undefined where they have nothing in common. */
export class HeaderReader {
  readonly #pattern: RegExp;

  private constructor(pattern: RegExp) {
    this.#pattern = pattern;
  }

  static forLines(lines: readonly string[]): HeaderReader | undefined {
    const best = CANDIDATES.find(
      ({ pattern }) =>
        lines.filter((line) => pattern.test(spaced(line))).length >= MIN_FITTING * lines.length,
    );
    return best && new HeaderReader(best.pattern);
  }

  read(line: string): EventHeader | undefined {
    const groups = this.#pattern.exec(spaced(line))?.groups;
    if (!groups) return undefined;
    const { comm = '', pid, tid, cpu, seconds, fraction = '', rest = '', event = '', period } = groups;
    const nanos = fraction.padEnd(9, '0');
    const time = seconds === undefined ? -1n : BigInt(seconds) * 1_000_000_000n + BigInt(nanos);
    return {
      comm,
      pid: natural(pid),
      tid: natural(tid),
      cpu: cpu === undefined ? -1 : Number(cpu),
      // no machine has run so long, and no format has room for it
      time: time > MAX_TIME ? -1n : time,
      hasBoth: pid !== undefined,
      event,
      period: Number(period ?? 1),
      rest,
    };
  }
}

const MAX_TIME = 2n ** 63n - 1n;

/** A thread that had ended has the ID -1. */
const natural = (text: string | undefined): number => Math.max(0, Number(text ?? 0));
