/** The programs that run in the guest, and what each knows about its own stacks. */

export interface FoldedSample {
  process: string;
  /** Root first. */
  frames: string[];
  count: number;
}

export interface KnownProgram {
  /** Its file in the guest, so that short-lived copies can be told from the one that stays. */
  name: string;
  /** Below test/. */
  source: string;
  /** By the C compiler where none is named; without its compiler the program is left out. */
  language?: 'go' | 'cgo' | 'musl';
  flags: string[];
  /** Beside those; the compiler's default signs no return address. */
  arm64Flags?: string[];
  /** The leaf where all calls are known to be there; guest-init knows it, too. */
  bottom: RegExp;
  isWhole(sample: FoldedSample): boolean;
}

export interface ProgramStacks {
  program: string;
  samples: number;
  whole: number;
  /** The most frequent of the others. */
  others: FoldedSample[];
}

const callsOf = (sample: FoldedSample, name = 'recurse'): number =>
  sample.frames.filter((frame) => frame === name).length;
const isDeep = (sample: FoldedSample): boolean => callsOf(sample) === 40 && sample.frames[0] === '_start';
const isOfGo = (sample: FoldedSample): boolean => /^runtime\.goexit/.test(sample.frames[0]!);
const BOTTOM_OF_C = /^(spin|recurse)$/;

export const KNOWN_PROGRAMS: readonly KnownProgram[] = [
  {
    name: 'deep',
    source: 'fixtures/deep.c',
    flags: ['-O2', '-fomit-frame-pointer'],
    arm64Flags: ['-mbranch-protection=standard'],
    bottom: BOTTOM_OF_C,
    isWhole: isDeep,
  },
  {
    name: 'short',
    source: 'fixtures/deep.c',
    flags: ['-O2', '-fomit-frame-pointer'],
    bottom: BOTTOM_OF_C,
    isWhole: isDeep,
  },
  {
    name: 'threads',
    source: 'fixtures/threads.c',
    flags: ['-O2', '-pthread'],
    bottom: BOTTOM_OF_C,
    // clone3, which Debian's stripped libc has no name for
    isWhole: (sample) => callsOf(sample) === 20 && /clone|libc\.so/.test(sample.frames[0]!),
  },
  {
    // all of its library lacks unwind information
    name: 'musl',
    source: 'fixtures/deep.c',
    language: 'musl',
    flags: ['-O2', '-fomit-frame-pointer', '-static'],
    bottom: BOTTOM_OF_C,
    isWhole: isDeep,
  },
  {
    name: 'go',
    source: 'fixtures/deep.go',
    language: 'go',
    flags: ['-ldflags=-s -w'],
    bottom: /^main\.leaf$/,
    isWhole: (sample) => callsOf(sample, 'main.recurse') === 40 && isOfGo(sample),
  },
  {
    name: 'cgo',
    source: 'toolchains/programs/cgo.go',
    language: 'cgo',
    flags: [],
    bottom: /^main\.spin$/,
    isWhole: (sample) =>
      callsOf(sample, 'c_recurse') === 10 && callsOf(sample, 'main.recurse') === 10 && isOfGo(sample),
  },
];

/** "process;root;…;leaf count" a line. */
export function parseFolded(lines: readonly string[]): FoldedSample[] {
  return lines.flatMap((line) => {
    const match = /^([^;]+);(.*) (\d+)$/.exec(line);
    return match ? [{ process: match[1]!, frames: match[2]!.split(';'), count: Number(match[3]) }] : [];
  });
}

const total = (samples: readonly FoldedSample[]): number => samples.reduce((sum, s) => sum + s.count, 0);

/**
 * Judged are the samples at the bottom of the recursion, whose stack is known exactly, from when the tables were
 * there: what came before ends in a marker that says so.
 */
export function judgeStacks(program: KnownProgram, samples: readonly FoldedSample[]): ProgramStacks {
  const judged = samples.filter(
    ({ process, frames }) =>
      process === program.name &&
      program.bottom.test(frames.at(-1)!) &&
      !frames.some((frame) => /not ready yet/.test(frame)),
  );
  const others = judged.filter((s) => !program.isWhole(s)).sort((a, b) => b.count - a.count);
  return {
    program: program.name,
    samples: total(judged),
    whole: total(judged) - total(others),
    others: others.slice(0, 3),
  };
}
