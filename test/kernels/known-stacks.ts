/** The programs that run in the guest, and what each knows about its own stacks. */
import { basename } from 'node:path';
import { processName, stackNames } from '../../common/profile/model/frame-name.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import type { Architecture } from './virtual-machine.ts';

export interface NamedSample {
  process: string;
  /** Root first. */
  frames: string[];
  /** Of those that a runtime interprets or compiles, root first: `function file:line`. */
  places: string[];
  count: number;
}

export interface KnownProgram {
  /** Its file in the guest, so that short-lived copies can be told from the one that stays. */
  name: string;
  /** Its executable's name where that is not the program's own. */
  process?: RegExp;
  /** Below test/. */
  source: string;
  /** By the C compiler where none is named; without its compiler or interpreter the program is left out. */
  language?: 'go' | 'cgo' | 'musl' | 'node' | 'python' | 'perl';
  flags: string[];
  /** The only one that it is for. */
  architecture?: Architecture;
  /** Beside those; the compiler's default signs no return address. */
  arm64Flags?: string[];
  /** Are all calls known to be there? guest-init looks for such samples, too. */
  isJudged(sample: NamedSample): boolean;
  isWhole(sample: NamedSample): boolean;
}

export interface ProgramStacks {
  program: string;
  samples: number;
  whole: number;
  /** The most frequent of the others. */
  others: NamedSample[];
}

const callsOf = (sample: NamedSample, name = 'recurse'): number =>
  sample.frames.filter((frame) => frame === name).length;
const isDeep = (sample: NamedSample): boolean => callsOf(sample) === 40 && sample.frames[0] === '_start';
const isOfGo = (sample: NamedSample): boolean => /^runtime\.goexit/.test(sample.frames[0]!);
const endsIn =
  (leaf: RegExp) =>
  ({ frames }: NamedSample): boolean =>
    leaf.test(frames.at(-1)!);
const isBottomOfC = endsIn(/^(spin|recurse)$/);

/** `calls`: functions of the script with their lines, from the root to the one that computes for ever. */
const inScript = (file: string, calls: RegExp): Pick<KnownProgram, 'isJudged' | 'isWhole'> => {
  const placesOf = ({ places }: NamedSample): string[] =>
    places.filter((place) => place.includes(` ${file}:`)).map((place) => place.replace(` ${file}`, ''));
  return {
    isJudged: (sample) => placesOf(sample).length > 0,
    // the official Node for arm64 has no unwind information for its first function
    isWhole: (sample) =>
      sample.frames.find((frame) => !/^\[cut: no unwind/.test(frame)) === '_start' &&
      calls.test(placesOf(sample).join(' ')),
  };
};

export const KNOWN_PROGRAMS: readonly KnownProgram[] = [
  {
    name: 'deep',
    source: 'fixtures/deep.c',
    flags: ['-O2', '-fomit-frame-pointer'],
    arm64Flags: ['-mbranch-protection=standard'],
    isJudged: isBottomOfC,
    isWhole: isDeep,
  },
  {
    name: 'short',
    source: 'fixtures/deep.c',
    flags: ['-O2', '-fomit-frame-pointer'],
    isJudged: isBottomOfC,
    isWhole: isDeep,
  },
  {
    name: 'threads',
    source: 'fixtures/threads.c',
    flags: ['-O2', '-pthread'],
    isJudged: isBottomOfC,
    // clone3, which Debian's stripped libc has no name for
    isWhole: (sample) => callsOf(sample) === 20 && /clone|libc\.so/.test(sample.frames[0]!),
  },
  {
    // the system call that ends a signal is the last instruction of its code: on arm64 the vDSO's
    name: 'signals',
    source: 'fixtures/signals.c',
    flags: ['-O2'],
    isJudged: ({ frames }) => frames.some((frame) => /^(provoke|handler)$|rt_sigreturn/.test(frame)),
    isWhole: ({ frames }) => frames[0] === '_start' && frames.includes('provoke'),
  },
  {
    // frames that are so many vectors long, and how long those are only the kernel knows
    name: 'vectors',
    source: 'fixtures/vectors.c',
    architecture: 'arm64',
    flags: ['-O2', '-fomit-frame-pointer', '-march=armv8-a+sve'],
    isJudged: isBottomOfC,
    isWhole: isDeep,
  },
  {
    // past code that only its frame pointer leads through, the stack pointer is found again
    name: 'generated',
    source: 'fixtures/generated.c',
    architecture: 'arm64',
    flags: ['-O2', '-fno-omit-frame-pointer'],
    isJudged: isBottomOfC,
    isWhole: isDeep,
  },
  {
    // all of its library lacks unwind information
    name: 'musl',
    source: 'fixtures/deep.c',
    language: 'musl',
    flags: ['-O2', '-fomit-frame-pointer', '-static'],
    isJudged: isBottomOfC,
    isWhole: isDeep,
  },
  {
    name: 'go',
    source: 'fixtures/deep.go',
    language: 'go',
    flags: ['-ldflags=-s -w'],
    isJudged: endsIn(/^main\.leaf$/),
    isWhole: (sample) => callsOf(sample, 'main.recurse') === 40 && isOfGo(sample),
  },
  {
    name: 'cgo',
    source: 'toolchains/programs/cgo.go',
    language: 'cgo',
    flags: [],
    isJudged: endsIn(/^main\.spin$/),
    isWhole: (sample) =>
      callsOf(sample, 'c_recurse') === 10 && callsOf(sample, 'main.recurse') === 10 && isOfGo(sample),
  },
  {
    name: 'deep.cjs',
    process: /^node$/,
    source: 'fixtures/deep.cjs',
    language: 'node',
    flags: [],
    ...inScript('deep.cjs', /^<anonymous>:17 main:14( recurse:10){9} recurse:9 leaf:[345]$/),
  },
  {
    name: 'deep.py',
    process: /^python3/,
    source: 'fixtures/deep.py',
    language: 'python',
    flags: [],
    ...inScript('deep.py', /^<module>:22 main:19( recurse:14){9} recurse:13 leaf:[678]$/),
  },
  {
    name: 'deep.pl',
    process: /^perl$/,
    source: 'fixtures/deep.pl',
    language: 'perl',
    flags: [],
    ...inScript('deep.pl', /^\(main\):18( main::recurse:14){9} main::recurse:13 main::leaf:[56]$/),
  },
];

const SCRIPTS: ReadonlySet<string> = new Set(['v8js', 'cpython', 'perl']);

export function namedSamples(profile: Profile): NamedSample[] {
  const { functions, locations } = profile;
  return profile.samples.map(({ stack, process, value: count }) => {
    const places = [...profile.stacks[stack]!].reverse().flatMap((at) => {
      const { frameType, lines } = locations[at]!;
      if (!SCRIPTS.has(frameType)) return [];
      return lines.toReversed().map(({ func, line }) => {
        const { name, filename } = functions[func]!;
        return `${name} ${basename(filename)}:${line}`;
      });
    });
    return { process: processName(profile, process), frames: stackNames(profile, stack), places, count };
  });
}

const total = (samples: readonly NamedSample[]): number => samples.reduce((sum, s) => sum + s.count, 0);

/**
 * Judged are the samples at the bottom of a recursion and the like, whose stack is known exactly, from when the tables were
 * there: what came before ends in a marker that says so.
 */
export function judgeStacks(program: KnownProgram, samples: readonly NamedSample[]): ProgramStacks {
  const judged = samples.filter(
    (sample) =>
      (program.process?.test(sample.process) ?? sample.process === program.name) &&
      program.isJudged(sample) &&
      !sample.frames.some((frame) => /not ready yet/.test(frame)),
  );
  const others = judged.filter((s) => !program.isWhole(s)).sort((a, b) => b.count - a.count);
  return {
    program: program.name,
    samples: total(judged),
    whole: total(judged) - total(others),
    others: others.slice(0, 3),
  };
}
