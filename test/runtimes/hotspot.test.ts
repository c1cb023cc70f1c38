/** Java stacks of real JVMs, compared with what the programs know of their own calls. */
import { type ChildProcess, spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { describeApproximateLines } from '../../common/profile/model/approximate-lines.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import { eachOf } from '../support/each-of.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { compileJava, findJavas, type Java, placeClasses } from './javas.ts';

const MODES: Readonly<Record<string, string[]>> = {
  interpreted: ['-Xint', 'Chain'],
  C1: ['-XX:TieredStopAtLevel=1', 'Chain'],
  inlined: ['Chain'],
  'not inlined': ['-XX:CompileCommand=quiet', '-XX:CompileCommand=dontinline,Chain::*', 'Chain'],
  shapes: ['Shapes'],
  'interpreted shapes': ['-Xint', 'Shapes'],
  'shapes by C1': ['-XX:TieredStopAtLevel=1', 'Shapes'],
};
const CHAINS = Object.keys(MODES).filter((mode) => !mode.includes('shapes'));
const SAMPLES = 150;
/** Of leaf; its lines are those of the loop. */
const LOOP = new Set([6, 7]);
const CHAIN = ['Chain.c:12', 'Chain.b:16', 'Chain.a:20', 'Chain.main:25'];
/** A JVM that has just started compiles. */
const SHARE = 0.98;
/** With a single CPU, as in the guest for arm64, one after the other. */
const AT_ONCE = availableParallelism() > 1 ? 4 : 1;
const LIMIT_MS = AT_ONCE > 1 ? 45_000 : 180_000;

interface JavaStack {
  /** `Chain.leaf:6`, leaf first. */
  frames: string[];
  isCut: boolean;
  count: number;
}

/** Stacks of the thread that runs main(): by its name, which those of the compilers do not have. */
function mainStacks(profile: Profile, pid: number): JavaStack[] {
  return profile.samples
    .filter(({ process, threadName }) => profile.processes[process]!.pid === pid && threadName === 'java')
    .map(({ stack, value: count }) => {
      const locations = [...profile.stacks[stack]!].map((at) => profile.locations[at]!);
      const lines = locations.filter(({ frameType }) => frameType === 'jvm').flatMap((one) => one.lines);
      return {
        frames: lines.map(({ func, line }) => `${profile.functions[func]!.name}:${line}`),
        isCut: locations.some(({ frameType }) => frameType === 'abort-marker'),
        count,
      };
    });
}

const sum = (stacks: JavaStack[]): number => stacks.reduce((total, { count }) => total + count, 0);
const JVM_STUB = /^\[jvm: StubRoutines/;

/** leaf c b a main, and then the JVM's own frames to the root. */
function isWholeChain({ frames, isCut }: JavaStack): boolean {
  const [leaf, ...callers] = frames.filter((frame) => !JVM_STUB.test(frame));
  const [name, line] = leaf?.split(':') ?? [];
  return (
    !isCut &&
    name === 'Chain.leaf' &&
    LOOP.has(Number(line)) &&
    callers.join() === CHAIN.join() &&
    JVM_STUB.test(frames.at(-1)!)
  );
}

/** Who may call whom. */
const CALLERS: Readonly<Record<string, RegExp>> = {
  'Shapes.megamorphic': /^Shapes\.(main|recursive)$/,
  'Shapes.recursive': /^Shapes\.(main|recursive)$/,
  'Shapes.empty': /^Shapes\.calls$/,
  'Shapes.one': /^Shapes\.calls$/,
  'Shapes.eight': /^Shapes\.calls$/,
  'Shapes.throwing': /^Shapes\.exceptions$/,
  'Shapes$A.area': /^Shapes\.megamorphic$/,
  'Shapes$B.area': /^Shapes\.megamorphic$/,
  'Shapes$C.area': /^Shapes\.megamorphic$/,
};
const OTHERS = /^Shapes\.(calls|arrays|objects|arithmetic|exceptions|lambdas|natives)$/;

/** From main, through calls that there are. */
function isPossible({ frames, isCut }: JavaStack): boolean {
  const names = frames.filter((frame) => !JVM_STUB.test(frame)).map((frame) => frame.split(':')[0]!);
  if (isCut || names.at(-1) !== 'Shapes.main' || !JVM_STUB.test(frames.at(-1)!)) return false;
  return names.every((name, i) => {
    const callers = CALLERS[name] ?? (OTHERS.test(name) ? /^Shapes\.main$/ : undefined);
    return !callers || callers.test(names[i + 1] ?? '');
  });
}

/**
 * Math.sin() and Math.pow() of JDK 8 move the stack pointer inside of a compiled frame: what called the method is lost,
 * below C1's saved registers also the method (docs/interpreters/hotspot.md).
 */
const isLostInArithmetic = ({ frames, isCut }: JavaStack): boolean =>
  frames.length === 1 && (isCut ? /^Shapes\.arithmetic:/ : JVM_STUB).test(frames[0]!);

eachOf(findJavas)('$title', (java) => {
  let recording: Recording;
  const results = new Map<string, JavaStack[]>();
  let saysApproximate = false;

  beforeAll(async () => {
    const classes = compileJava();
    recording = await Recording.start({ targets: [], samplesPerSecond: 997 });
    const modes = Object.keys(MODES);
    for (let i = 0; i < modes.length; i += AT_ONCE) await measure(classes, modes.slice(i, i + AT_ONCE));
  }, LIMIT_MS * Object.keys(MODES).length);

  afterAll(async () => {
    await recording?.stop();
  });

  function isRight(mode: string, stack: JavaStack): boolean {
    if (CHAINS.includes(mode)) return isWholeChain(stack);
    return isPossible(stack) || (java.major === 8 && isLostInArithmetic(stack));
  }

  /** From the first right stack of each on: what came before was starting. */
  async function measure(classes: string, modes: string[]): Promise<void> {
    const running = modes.map((mode) => [mode, start(java, classes, mode)] as const);
    const stacksOf = ({ pid }: ChildProcess) => recording.profiles.flatMap((p) => mainStacks(p, pid!));
    try {
      for (const [, child] of running) recording.controller.addTarget(toPid(child.pid!));
      await recording
        .until(
          () => running.every(([mode, child]) => stacksOf(child).some((stack) => isRight(mode, stack))),
          LIMIT_MS,
        )
        .catch(() => {
          /* the tests below say which */
        });
      recording.clear();
      await recording
        .until(() => running.every(([, child]) => sum(stacksOf(child)) >= SAMPLES), LIMIT_MS)
        .catch(() => {});
      for (const [mode, child] of running) results.set(mode, stacksOf(child));
      saysApproximate ||= recording.profiles.some((profile) => describeApproximateLines(profile) !== '');
    } finally {
      for (const [, child] of running) child.kill('SIGKILL');
    }
    recording.clear();
  }

  it.for(Object.keys(MODES))('%s', (mode, { task }) => {
    task.meta.build = java.build;
    const stacks = results.get(mode)!;
    const wrong = stacks.filter((stack) => !isRight(mode, stack));
    const texts = wrong.slice(0, 3).map(({ frames, isCut }) => `${frames.join(' < ')}${isCut ? ' cut' : ''}`);
    expect(sum(stacks)).toBeGreaterThanOrEqual(SAMPLES);
    expect(1 - sum(wrong) / sum(stacks), texts.join('\n')).toBeGreaterThanOrEqual(SHARE);
  });

  it('is attached to', ({ task }) => {
    task.meta.build = java.build;
    expect(recording.warnings.filter((text) => text.includes("can't be attached to"))).toEqual([]);
    const counters = recording.controller.counters();
    expect(counters['processRuntimes.attached']).toBeGreaterThanOrEqual(Object.keys(MODES).length);
    expect(counters['processRuntimes.failed']).toBe(0);
    // none of them has DebugNonSafepoints
    expect(saysApproximate).toBe(true);
  });
});

function start(java: Java, classes: string, mode: string): ChildProcess {
  const options = MODES[mode]!;
  const name = options.at(-1)!;
  const [program, ...args] = java.command;
  const ofJava = [...options.slice(0, -1), '-Xmx64m', '-cp', placeClasses(java, classes), name];
  return spawn('nice', ['-n', '19', program!, ...args, ...ofJava], { stdio: 'ignore' });
}
