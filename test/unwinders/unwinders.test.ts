/**
 * The unwinders of ebpf/ as an ordinary program with sanitizers, over processes that were captured: see host.c and
 * capture.ts. No root, no kernel.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { EF_MAX_USER_FRAMES, EF_MAX_WORDS, FrameKind, Marker } from '../../agent/records/records.gen.ts';
import { hasTool } from '../support/fixtures.ts';
import { type Frame, framesOf, parseCase, parseStacks, textOf, type Unwound } from './case.ts';
import { jitCase, pendingCase, syntheticCase } from './synthetic-case.ts';

const ROOT = join(import.meta.dirname, '../..');
const CASES = join(import.meta.dirname, 'cases');
const HOSTILE_RUNS = 300;
/** Ends of a runtime's frames that are not a cut of the stack. */
const LOSSES = [
  'python_no_thread',
  'python_read_failed',
  'python_not_code',
  'v8_read_failed',
  'v8_not_object',
  'php_read_failed',
  'php_not_function',
  'php_no_globals',
  'ruby_read_failed',
  'ruby_bad_frame',
  'perl_read_failed',
  'perl_bad_context',
  'perl_not_function',
  'luajit_read_failed',
  'luajit_bad_frame',
  'luajit_no_frame',
  'lua_read_failed',
  'lua_bad_frame',
  'lua_no_thread',
  'dotnet_read_failed',
  'dotnet_no_method',
  'dotnet_no_function',
  'dotnet_no_caller',
  'dotnet_unwind_unread',
  'beam_read_failed',
  'beam_no_stack',
];

/** By what the program printed: chain.cjs, computing.lua, chain.cs and signal.c; scenarios.py prints the stack itself, as
 * scenarios.erl does after the scenario's name. */
const KNOWN_CHAINS: Readonly<Record<string, RegExp>> = {
  ready: /(^| )leaf c <anonymous> map b a tick listOnTimeout processTimers /,
  computing:
    /^leaf inner (?:lua\S+ )*pcall \(anonymous:14\) (?:lua\S+ )*resume .*\(main\) .*__?(?:libc_start_main lua\S+|start)$/,
  'known chain':
    /^Known\.Work\.Spin Known\.Work\.Thin Known\.Box<T>\.Open Known\.Box<T>\.Lid<U>\.Lift Known\.Program\.Plain Known\.Program\.Run Known\.Program\.Main /,
  spinning: /^spin on_signal .* compare .* qsort_r sort main .* _start$/,
};

function run(mode: string[], text: string): Unwound[] {
  const options = { input: text, encoding: 'utf8', maxBuffer: 256 << 20, timeout: 60_000 } as const;
  const { status, stdout, stderr } = spawnSync(join(ROOT, 'build/unwinders'), mode, options);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return parseStacks(stdout);
}

const isNative = ({ kind }: Frame): boolean => kind === FrameKind.FILE || kind === FrameKind.ANON;
const isInterpreted = (frame: Frame): boolean => !isNative(frame) && frame.kind !== FrameKind.MARKER;

/** Which function an interpreted frame is, whatever is known of the place in it. */
const functionOf = ({ kind, operand }: Frame): string => `${kind} ${(operand % (1n << 48n)).toString(16)}`;

const nativeOf = (frames: readonly Frame[]): string[] =>
  frames.filter(isNative).map(({ operand, second }) => `${second} ${operand}`);

const losses = ({ counters }: Unwound): number =>
  LOSSES.reduce((sum, name) => sum + (counters[name] ?? 0), 0);

function isSubsequence(part: readonly string[], whole: readonly string[]): boolean {
  let at = 0;
  for (const item of part) {
    at = whole.indexOf(item, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

describe.skipIf(!hasTool('gcc')).each(readdirSync(CASES))('%s', (name) => {
  const text = gunzipSync(readFileSync(join(CASES, name))).toString();
  const source = parseCase(text);
  let whole: Unwound;
  let frames: Frame[];

  beforeAll(() => {
    execFileSync('make', ['-s', 'build/unwinders'], { cwd: ROOT });
    whole = run(['run'], text)[0]!;
    frames = framesOf(whole.words);
  });

  it('is unwound to its root, and named', () => {
    expect(textOf(frames, source)).toEqual(source.expected);
    expect(whole.marker).toBe(Marker.NONE);
    expect(losses(whole)).toBe(0);
  });

  it('has the functions that the program has called', () => {
    const names = source.expected.map((line) => line.replace(/ [^ ]+:\d+$/, ''));
    const known = KNOWN_CHAINS[source.said];
    if (known) {
      expect(names.join(' ')).toMatch(known);
      return;
    }
    const frames = (JSON.parse(source.said) as (string | [string, ...unknown[]])[]).filter(Array.isArray);
    const said = frames.map(([called]) => called as string);
    const named = names.filter((_, i) => /(\.py|<string>|\.php|\.rb|\.pl|\.erl):/.test(source.expected[i]!));
    const plain = named.map((name) =>
      name.replace(/\{closure:\d+\}|(?<=__ANON__):\d+/, (text) => (text[0] === '{' ? '{closure}' : '')),
    );
    expect(plain).toEqual(said);
  });

  it('loses no more than what a failed read leads to, and says so', () => {
    const stacks = run(['fail'], text).slice(1);
    expect(stacks).toHaveLength(whole.reads);
    for (const [i, stack] of stacks.entries()) {
      const title = `read ${i + 1} of ${whole.reads} failed`;
      const left = framesOf(stack.words);
      const functions = frames.filter(isInterpreted).map(functionOf);
      expect(isSubsequence(left.filter(isInterpreted).map(functionOf), functions), title).toBe(true);
      const isWhole = stack.words.join() === whole.words.join();
      expect(isWhole || stack.marker !== Marker.NONE || losses(stack) > 0, title).toBe(true);
      // what fails costs the runtime's frames, not the stack
      if (stack.marker === Marker.NONE)
        expect(isSubsequence(nativeOf(frames), nativeOf(left)), title).toBe(true);
      expect(stack.reads, title).toBeLessThanOrEqual(whole.reads * 2);
    }
  });

  it('stays within its bounds whatever memory says', () => {
    const stacks = run(['hostile', String(HOSTILE_RUNS)], text).slice(1);
    expect(stacks).toHaveLength(HOSTILE_RUNS);
    for (const stack of stacks) {
      expect(stack.frames).toBeLessThanOrEqual(EF_MAX_USER_FRAMES);
      expect(stack.words.length).toBeLessThanOrEqual(EF_MAX_WORDS);
      framesOf(stack.words);
    }
  });
});

describe.skipIf(!hasTool('gcc'))('a list of Python frames', () => {
  beforeAll(() => {
    execFileSync('make', ['-s', 'build/unwinders'], { cwd: ROOT });
  });

  it('that belongs to a frame far out is not walked again for each frame on the way', () => {
    const [natives, pythons] = [400, 500];
    const stack = run(['run'], syntheticCase(natives, pythons))[0]!;
    const kinds = framesOf(stack.words).map(({ kind }) => kind);
    expect(kinds).toEqual([
      ...Array(natives - 1).fill(FrameKind.FILE),
      ...Array(pythons).fill(FrameKind.PYTHON),
      FrameKind.FILE,
    ]);
    // a frame of the list takes three reads, a native one has one return address
    expect(stack.reads).toBeLessThan(2 * 3 * pythons + 2 * natives);
  });
});

describe.skipIf(!hasTool('gcc'))('a frame pointer that is followed for want of a table', () => {
  beforeAll(() => {
    execFileSync('make', ['-s', 'build/unwinders'], { cwd: ROOT });
  });
  const unwind = (returnAddress: number): Unwound => run(['run'], pendingCase(returnAddress))[0]!;

  it('and leads to no code: the stack ends for want of that table', () => {
    expect(unwind(0x1234_5678)).toMatchObject({ frames: 1, marker: Marker.PENDING });
  });

  it('and leads to code: that is a frame, and the next guess stands for itself', () => {
    expect(unwind(0x10300)).toMatchObject({ frames: 2, marker: Marker.PENDING });
  });
});

describe.skipIf(!hasTool('gcc'))('code of a JIT', () => {
  it('is unwound by the table of its own range', () => {
    execFileSync('make', ['-s', 'build/unwinders'], { cwd: ROOT });
    expect(run(['run'], jitCase())[0]).toMatchObject({ frames: 2, marker: Marker.NONE });
  });
});
