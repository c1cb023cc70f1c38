/** Stacks through code whose unwind information is unusual, or that has none. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../common/base/brand.ts';
import { compile, missingRights } from './support/fixtures.ts';
import { Recording, type Stack, share, total } from './support/recording.ts';

const SAMPLES = 50;
const LIMIT_MS = 120_000;

interface Program {
  title: string;
  source: string[];
  flags?: string[];
  /** Frames in this order, leaf first. */
  stack: RegExp[];
}

/** On arm64 the code is what is mapped first, with a gap behind it; moved whole it would lie in no image. */
const CODE_INSIDE = '-Wl,-z,separate-code,-z,max-page-size=4096';

const PROGRAMS: Program[] = [
  {
    title: 'functions that change stacks, with the letter S and rules of their own',
    source: ['other-stack.c'],
    stack: [/^leaf$/, /^on_other_stack$/, /^below$/, /^on_other_stack$/, /^main$/],
  },
  {
    title: 'assembly without unwind information, with and without symbols',
    source: ['no-cfi.c', 'no-cfi.S'],
    stack: [/^(spin_asm|second(_asm)?)$/, /^caller$/, /^main$/],
  },
  {
    title: 'code that the process has moved to memory of its own',
    source: ['moved-text.c'],
    flags: [CODE_INSIDE, '-O2'],
    stack: [/^moved_leaf$/, /^moved_caller$/, /^main$/],
  },
  {
    title: 'code that the process has moved to memory that it may share',
    source: ['moved-text.c'],
    flags: [CODE_INSIDE, '-O2', '-DSHARED'],
    stack: [/^moved_leaf$/, /^moved_caller$/, /^main$/],
  },
  {
    title: 'code of a JIT that has registered its unwind information',
    source: ['jit-frames.c'],
    stack: [/^called_back$/, /^\[anon\]/, /^calls_jit$/, /^main$/],
  },
  {
    title: 'code of a JIT that describes it for debuggers alone',
    source: ['described-jit.c'],
    stack: [/^called_back$/, /^\[anon\]/, /^calls_jit$/, /^main$/],
  },
  {
    title: 'code of a JIT that describes it for debuggers alone, and maps it twice',
    source: ['described-jit.c'],
    flags: ['-O2', '-DSHARED'],
    stack: [/^called_back$/, /^\[anon\]/, /^calls_jit$/, /^main$/],
  },
];

const isWhole = ({ frames }: Stack): boolean => frames.at(-1) === '_start';
const follows = ({ frames }: Stack, names: readonly RegExp[]): boolean => {
  const users = frames.filter((f) => !f.endsWith('_[k]'));
  return names.every((name, i) => name.test(users[i] ?? ''));
};

describe.skipIf(missingRights)('whole stacks', () => {
  const running = new Map<Program, ChildProcess>();
  let recording: Recording;
  const stacksOf = (program: Program): Stack[] => recording.stacks(running.get(program)!.pid);

  beforeAll(async () => {
    for (const program of PROGRAMS) {
      const [first, ...more] = program.source;
      const path = compile(
        `${first!.replace('.c', '')}-undescribed${program.flags?.at(-1) ?? ''}`,
        'gcc',
        program.flags ?? ['-O2'],
        first!,
        ...more,
      );
      running.set(program, spawn('nice', ['-n', '19', path], { stdio: 'ignore' }));
    }
    recording = await Recording.start({ targets: [...running.values()].map(({ pid }) => toPid(pid!)) });
    // from the first whole stack of each on: what came before lacked tables
    await recording.until(
      () => PROGRAMS.every((p) => stacksOf(p).some((s) => isWhole(s) && follows(s, p.stack))),
      LIMIT_MS,
    );
    recording.clear();
    await recording.until(() => PROGRAMS.every((p) => total(stacksOf(p)) >= SAMPLES), LIMIT_MS);
  }, 2 * LIMIT_MS);
  afterAll(async () => {
    await recording?.stop();
    for (const child of running.values()) child.kill('SIGKILL');
  });

  it.each(PROGRAMS)('of $title', (program) => {
    const whole = share(stacksOf(program), isWhole);
    expect(whole).toBeGreaterThan(0.98);
    // the rest was met between two calls
    expect(share(stacksOf(program), (s) => follows(s, program.stack))).toBeGreaterThan(0.95);
  });
});

const CLONE = /_sys_clone3_\[k\]$/;

describe.skipIf(missingRights)('a program that makes threads and processes', () => {
  it('is whole in the system call that makes them', { timeout: LIMIT_MS }, async () => {
    const path = compile('makes-threads', 'gcc', ['-O2', '-pthread'], 'makes-threads.c');
    const child = spawn('nice', ['-n', '19', path], { stdio: 'ignore' });
    const recording = await Recording.start({ targets: [toPid(child.pid!)] });
    const makers = () =>
      recording.stacks(child.pid!).filter(({ frames }) => frames.some((name) => CLONE.test(name)));
    const isOf = (name: string) => (stack: Stack) => isWhole(stack) && stack.frames.includes(name);
    try {
      await recording.until(() => makers().some(isOf('main')));
      recording.clear();
      await recording.until(() => ['make_thread', 'make_process'].every((name) => makers().some(isOf(name))));
      await recording.until(() => total(makers()) >= SAMPLES);
      const other = makers().find((stack) => !isWhole(stack));
      expect(share(makers(), isWhole), other?.frames.join('\n')).toBeGreaterThan(0.95);
    } finally {
      child.kill('SIGKILL');
      await recording.stop();
    }
  });
});
