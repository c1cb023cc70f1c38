/** Known stacks of real programs, from the timer in the kernel to named frames. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../common/base/brand.ts';
import { compile, hasTool, missingRights } from './support/fixtures.ts';
import { Recording, type Stack, share, total } from './support/recording.ts';

const SAMPLES = 300;
/** Busy machines take their time. */
const LIMIT_MS = 240_000;

interface Program {
  title: string;
  tool: string;
  build(): [string, ...string[]];
  /** A whole stack of this program. */
  isWhole(stack: Stack): boolean;
  /** Of whole stacks, those that are waited for; without it, any. */
  isTelling?: (stack: Stack) => boolean;
}

/** On arm64 `_start` and what it calls jump, each of them, with a return address of 0; the first that calls has signed it. */
const MUSL_ROOT = process.arch === 'arm64' ? 'libc_start_main_stage2' : '_start';
const root = (stack: Stack): string => stack.frames.at(-1) ?? '';
const countOf = (stack: Stack, pattern: RegExp): number => stack.frames.filter((f) => pattern.test(f)).length;
/** Where it spins all calls are there; on its way down or up (0.3 % of the time) it has as many as it has. */
const deep = (recurse: RegExp, rootName: string) => (stack: Stack) => {
  const calls = countOf(stack, recurse);
  const isAtTheBottom = countOf(stack, /spin/) > 0;
  return (isAtTheBottom ? calls === 40 : calls <= 40) && root(stack) === rootName;
};
/** A program that calls functions of a library for the first time, again and again. */
function buildLazy(): [string, string] {
  const library = compile('lazy.so', 'gcc', ['-DLIBRARY', '-shared', '-fPIC', '-Wl,-z,lazy'], 'lazy.c');
  return [compile('lazy', 'gcc', ['-O2'], 'lazy.c'), library];
}
/** clone3, which Debian's stripped libc has no name for. */
const isThreadRoot = (name: string): boolean => /clone|libc\.so/.test(name);
/** Frames in this order, leaf first, others in between allowed. */
const chain = (stack: Stack, ...names: RegExp[]): boolean => {
  let at = 0;
  for (const frame of stack.frames) if (at < names.length && names[at]!.test(frame)) at++;
  return at === names.length;
};
const place = (name: string, isWhole: (stack: Stack) => boolean): Program => ({
  title: `code in ${name}`,
  tool: 'gcc',
  build: () => [compile('places', 'gcc', ['-O2'], 'places.c'), name],
  isWhole: (stack) => isWhole(stack) && root(stack) === '_start',
});

const inSigreturn = (stack: Stack): boolean => countOf(stack, /rt_sigreturn.*_\[k\]$/) > 0;
/** The kernel puts registers in place or back, one by one: some are those of the handler, some are not. */
const changesRegisters = (stack: Stack): boolean =>
  countOf(stack, /^(restore_sig(context|frame)|\w*setup_rt_frame|(arch_)?do_signal(_or_restart)?)_\[k\]$/) >
  0;
/** Behind the last instruction of what a handler returns to, another function may begin: so it is in musl. */
const signals = (title: string, tool: string, rootName: string, ...flags: string[]): Program => ({
  title: `the system call that ends a signal, ${title}`,
  tool,
  build: () => [compile(`signals-${tool}`, tool, ['-O2', ...flags], 'signals.c')],
  isWhole: (stack) =>
    changesRegisters(stack) || (root(stack) === rootName && chain(stack, /^provoke$/, /^main$/)),
  isTelling: inSigreturn,
});

const PROGRAMS: Program[] = [
  {
    title: 'C without frame pointers, 40 deep',
    tool: 'gcc',
    build: () => [compile('deep-c', 'gcc', ['-O2', '-fomit-frame-pointer'], 'deep.c'), '40'],
    isWhole: deep(/^recurse$/, '_start'),
  },
  {
    title: 'C++, 40 deep',
    tool: 'g++',
    build: () => [compile('deep-cxx', 'g++', ['-O2'], 'deep.cc'), '40'],
    isWhole: deep(/recurse/, '_start'),
  },
  {
    title: 'Rust release, 40 deep',
    tool: 'rustc',
    build: () => [compile('deep-rs', 'rustc', ['-O'], 'deep.rs'), '40'],
    isWhole: deep(/recurse/, '_start'),
  },
  {
    title: 'a static musl binary, 40 deep',
    tool: 'musl-gcc',
    build: () => [compile('deep-musl', 'musl-gcc', ['-O2', '-static'], 'deep.c'), '40'],
    isWhole: deep(/^recurse$/, MUSL_ROOT),
  },
  {
    title: 'threads, 20 deep',
    tool: 'gcc',
    build: () => [compile('threads', 'gcc', ['-O2', '-pthread'], 'threads.c')],
    isWhole: (stack) => countOf(stack, /^recurse$/) === 20 && isThreadRoot(root(stack)),
  },
  {
    title: 'functions that the dynamic linker looks up at their first call',
    tool: 'gcc',
    build: buildLazy,
    isWhole: (stack) =>
      root(stack) === '_start' &&
      (countOf(stack, /^call_all$/) === 0 || chain(stack, /^call_all$/, /^call_library$/, /^main$/)),
    isTelling: (stack) => countOf(stack, /^call_all$/) > 0,
  },
  signals('glibc', 'gcc', '_start'),
  signals('musl', 'musl-gcc', MUSL_ROOT, '-static'),
  place('libc', (stack) => chain(stack, /^(in_libc|outer|main)$/, /^_start$/)),
  place('signal', (stack) => {
    const isHandled = stack.frames.some((f) => /^(burn|handler)$/.test(f));
    const inHandler = [/^(burn|handler)$/, /restore_rt|libc\.so/];
    return chain(stack, ...(isHandled ? inHandler : []), /raise|pthread_kill|outer/, /^main$/, /^_start$/);
  }),
  place('vdso', (stack) => chain(stack, /^outer|^main$|in_vdso/, /^_start$/)),
  place('stat', (stack) => chain(stack, /^(in_stat|outer|main)$/, /^_start$/)),
  place('vfork', (stack) => chain(stack, /^(in_vfork|outer|main)$/, /^_start$/)),
  place('read', (stack) => chain(stack, /^(in_read|outer|main)$/, /^_start$/)),
];

describe.skipIf(missingRights)('whole stacks', () => {
  const running = new Map<Program, ChildProcess>();
  let recording: Recording;
  let waitingFor: Program[] = [];

  const stacksOf = (program: Program): Stack[] => recording.stacks(running.get(program)!.pid);

  beforeAll(async () => {
    for (const program of PROGRAMS) {
      if (!hasTool(program.tool)) continue;
      const [path, ...args] = program.build();
      // nice: ten busy programs would starve the agent on a small machine
      running.set(program, spawn('nice', ['-n', '19', path, ...args], { stdio: 'ignore' }));
    }
    // only these: on a machine that does much else their tables would have to wait
    const pids = [...running.values()].map(({ pid }) => toPid(pid!));
    recording = await Recording.start({ targets: pids });
    // from the first whole stack of each on: what came before lacked tables
    await recording
      .until(() => {
        waitingFor = [...running.keys()].filter(
          (p) => !stacksOf(p).some((s) => p.isWhole(s) && (p.isTelling?.(s) ?? true)),
        );
        return waitingFor.length === 0;
      }, LIMIT_MS)
      .catch((error) => {
        const samples = waitingFor.map((p) => [p.title, stacksOf(p).slice(-2)]);
        throw new Error(`${error.message}\nnot whole once: ${JSON.stringify(samples)}`);
      });
    recording.clear();
    await recording.until(() => {
      const done = [...running.keys()].filter((p) => total(stacksOf(p)) >= SAMPLES);
      // one that makes processes would wait for all the others each time
      for (const program of done) running.get(program)!.kill('SIGSTOP');
      return done.length === running.size;
    }, LIMIT_MS);
  }, 2 * LIMIT_MS);

  afterAll(async () => {
    for (const child of running.values()) child.kill('SIGKILL');
    await recording?.stop();
  });

  it.each(PROGRAMS)('$title', (program) => {
    if (!running.has(program)) {
      console.log(`skipped: ${program.tool} is not installed`);
      return;
    }
    const stacks = stacksOf(program);
    const whole = share(stacks, program.isWhole);
    const others = stacks.filter((s) => !program.isWhole(s)).slice(0, 3);
    expect(whole, `${total(stacks)} samples; not whole: ${JSON.stringify(others)}`).toBeGreaterThanOrEqual(
      0.995,
    );
  });

  it('goes through the trampoline of the dynamic linker, whose frame another register finds', () => {
    const program = PROGRAMS.find((p) => p.title.includes('dynamic linker'))!;
    const looksUp = (s: Stack): boolean => chain(s, /_dl_runtime_resolve|ld-linux/, /^call_all$/);
    const stacks = stacksOf(program);
    expect(share(stacks, looksUp), JSON.stringify(stacks.slice(0, 5))).toBeGreaterThan(0.03);
  });

  it('puts the kernel frames of a system call above the user frames that made it', () => {
    for (const [name, frame] of [
      ['stat', /stat|path|lookup/],
      ['read', /read|random|chacha/],
    ] as const) {
      const program = PROGRAMS.find((p) => p.title === `code in ${name}`)!;
      const inKernel = stacksOf(program).filter((s) => s.kernelFrames > 0);
      expect(share(stacksOf(program), (s) => s.kernelFrames > 0)).toBeGreaterThan(0.5);
      expect(
        share(inKernel, (s) => s.frames.slice(0, s.kernelFrames).some((f) => frame.test(f))),
      ).toBeGreaterThan(0.8);
      expect(share(inKernel, (s) => root(s) === '_start')).toBeGreaterThan(0.99);
    }
  });

  it('goes through the frame that the kernel made for a signal', () => {
    const program = PROGRAMS.find((p) => p.title === 'code in signal')!;
    expect(
      share(stacksOf(program), (s) => chain(s, /^(burn|handler)$/, /raise|pthread_kill/)),
    ).toBeGreaterThan(0.8);
  });

  it.each(PROGRAMS.filter((p) => p.title.includes('ends a signal') && hasTool(p.tool)))(
    'names what made the system call, not what lies behind it: $title',
    (program) => {
      const inKernel = stacksOf(program).filter((s) => inSigreturn(s) && !changesRegisters(s));
      // behind that it is what was interrupted
      const isCaller = ({ frames, kernelFrames }: Stack): boolean =>
        /restore|rt_sigreturn|libc\.so|raise|kill/.test(frames[kernelFrames]!);
      expect(share(inKernel, isCaller), JSON.stringify(inKernel.find((s) => !isCaller(s)))).toBeGreaterThan(
        0.95,
      );
    },
  );

  it('shows what libc calls back between the frames of its callers', () => {
    const program = PROGRAMS.find((p) => p.title === 'code in libc')!;
    const called = share(stacksOf(program), (s) => chain(s, /^compare/, /qsort/, /^in_libc$/, /^main$/));
    expect(called).toBeGreaterThan(0.1);
  });

  it('names the vDSO', () => {
    const program = PROGRAMS.find((p) => p.title === 'code in vdso')!;
    const named = share(stacksOf(program), (s) =>
      s.frames.some((f) => /^(__vdso_|__kernel_)?(clock_gettime|gettimeofday)$/.test(f)),
    );
    expect(named).toBeGreaterThan(0.5);
  });
});
