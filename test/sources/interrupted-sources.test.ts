/**
 * Two sources of samples that interrupt each other: the timer's ticks come upon a program that takes a sample for a system
 * call. Each has memory of its own, so the stacks of both stay right, and what they count adds up.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadNative, type Native, type NativeBpfObject, type NativeRing } from '../../agent/base/native.ts';
import { onlineCpus } from '../../agent/host/cpus.ts';
import { BPF_COUNTERS, type BpfCounter } from '../../agent/records/counters.gen.ts';
import {
  Context,
  FrameKind,
  Origin,
  PROFILE_TYPES,
  RecordType,
  SAMPLE,
  Targets,
  TRACE,
} from '../../agent/records/records.gen.ts';
import { RUNTIMES } from '../../agent/runtimes/runtimes.gen.ts';
import { BpfPrograms, type BpfSettings, makeOpener } from '../../agent/tracer/bpf-object.ts';
import { CPU_CLOCK, PerfEvents } from '../../agent/tracer/perf-events.ts';
import { RecordStream } from '../../agent/tracer/record-stream.ts';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';

const ROOT = join(import.meta.dirname, '../..');
const SECONDS = 4;
/** As in fixtures/marks.c. */
const [MARK_DEPTH, WORK_DEPTH] = [30, 17];
const ORIGIN_MARK = PROFILE_TYPES.length;
const ORIGIN_TIMER = ORIGIN_MARK + 1;

const SETTINGS: BpfSettings = {
  runtimes: RUNTIMES,
  maxUserFrames: 1023,
  targets: Targets.CHOSEN,
  sendIdleFrames: false,
  ringBytes: 32 << 20,
  maxFiles: 1024,
  maxTables: 16,
};

interface Trace {
  kernel: bigint[];
  /** Offsets in files, leaf first. */
  user: number[];
}

interface Source {
  samples: number;
  value: bigint;
  hashes: Set<bigint>;
}

function readTrace(buffer: Buffer, at: number): Trace {
  const words = buffer.readUInt16LE(at + TRACE.words);
  const kernelFrames = buffer.readUInt16LE(at + TRACE.kernelFrames);
  const all = Array.from({ length: words }, (_, i) => buffer.readBigUInt64LE(at + TRACE.frames + i * 8));
  const user: number[] = [];
  for (let i = kernelFrames; i < words; i++) {
    if (Number(all[i]! >> 56n) !== FrameKind.FILE) continue;
    user.push(Number(all[i]! & ((1n << 56n) - 1n)));
    i++;
  }
  return { kernel: all.slice(0, kernelFrames), user };
}

/** Of the offsets in a stack, the one that a recursion has left there. */
const mostFrequent = (values: readonly number[]): number => {
  const times = new Map<number, number>();
  for (const value of values) times.set(value, (times.get(value) ?? 0) + 1);
  return [...times].sort((a, b) => b[1] - a[1])[0]![0];
};
const count = (values: readonly number[], value: number): number => values.filter((v) => v === value).length;

const canRun = !missingRights && hasTool('bpftool');
if (!canRun && !missingRights) console.log('skipped: bpftool is not installed');

describe.skipIf(!canRun)('sources that interrupt each other', () => {
  const traces = new Map<bigint, Trace>();
  const sources = new Map<number, Source>();
  let native: Native;
  let programs: BpfPrograms;
  let object: NativeBpfObject;
  let ring: NativeRing;
  let events: PerfEvents;
  let child: ChildProcess;
  let said = '';
  /** Of the machine code of the program that takes a sample for a system call. */
  let code: { start: bigint; bytes: number }[] = [];
  let counters: Record<BpfCounter, number>;

  function onRecord(buffer: Buffer, at: number): undefined {
    const type = buffer.readUInt16LE(at);
    if (type === RecordType.TRACE)
      traces.set(buffer.readBigUInt64LE(at + TRACE.traceHash), readTrace(buffer, at));
    if (type !== RecordType.SAMPLE) return;
    const origin = buffer.readUInt16LE(at + SAMPLE.origin);
    const source = sources.get(origin) ?? { samples: 0, value: 0n, hashes: new Set<bigint>() };
    sources.set(origin, source);
    source.samples++;
    source.value += buffer.readBigUInt64LE(at + SAMPLE.value);
    source.hashes.add(buffer.readBigUInt64LE(at + SAMPLE.traceHash));
  }

  /** What the samples of a source came upon, each once. */
  const stacksOf = (origin: number): Trace[] =>
    [...sources.get(origin)!.hashes].map((hash) => traces.get(hash)!);

  beforeAll(async () => {
    execFileSync('make', ['-s', 'build/test-sources.bpf.o'], { cwd: ROOT });
    const program = compile(
      'marks',
      'gcc',
      ['-O1', '-fno-omit-frame-pointer', '-fno-optimize-sibling-calls'],
      'marks.c',
    );
    native = loadNative();
    programs = new BpfPrograms(native, SETTINGS, (message) => expect.unreachable(message));
    object = makeOpener(native, SETTINGS)('test-sources.bpf.o', {
      programs: ['on_mark', 'on_timer'],
      context: Context.EVENT,
      share: [programs.base],
    });
    object.loadSync();
    child = spawn(program, [String(SECONDS)], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdout!.on('data', (data) => (said += data));
    const [pid, one] = [Buffer.alloc(4), Buffer.alloc(4)];
    pid.writeUInt32LE(child.pid!);
    one.writeUInt32LE(1);
    native.mapUpdate(programs.base.mapFd('targets'), pid, one, 0);
    let stream: RecordStream;
    ring = new native.Ring(programs.base.mapFd('records'), () => stream.drain());
    stream = new RecordStream(ring, { onRecord });
    object.attachRawTracepoint('on_mark', 'sys_enter');
    object.attachRawTracepoint('on_timer', 'hrtimer_expire_entry');
    events = new PerfEvents(native, {
      spreadNs: 0,
      open: (cpu) =>
        native.perfOpen(
          cpu,
          { ...CPU_CLOCK, period: 200_000, includeIdle: false },
          programs.base.programFd('tick'),
        ),
    });
    await events.follow(onlineCpus());
    await events.enable();
    const timer = setInterval(() => stream.drain(), 50);
    child.stdin!.end('\n');
    await once(child, 'exit');
    events.disable();
    clearInterval(timer);
    await stream.catchUp(Infinity);
    const shown = JSON.parse(execFileSync('bpftool', ['prog', 'show', '-j'], { encoding: 'utf8' })) as {
      id: number;
      name?: string;
    }[];
    code = shown
      .filter(({ name }) => name === 'on_mark')
      .flatMap(({ id }) => native.bpfProgramFunctions(id, false) ?? []);
    const sums = native.sumPerCpu(programs.base.mapFd('counters'), 0, BPF_COUNTERS.length);
    counters = Object.fromEntries(BPF_COUNTERS.map(({ name }, i) => [name, sums[i]!])) as typeof counters;
  });

  afterAll(async () => {
    child?.kill('SIGKILL');
    events?.close();
    ring?.close();
    object?.close();
    await programs?.close();
  });

  it('did so: ticks came upon the code of the other source', () => {
    const isInside = (address: bigint): boolean =>
      code.some(({ start, bytes }) => address >= start && address < start + BigInt(bytes));
    const inside = stacksOf(Origin.CPU).filter(({ kernel }) => kernel.some(isInside));
    expect(inside.length).toBeGreaterThan(10);
  });

  it('lose no event, and add up what each measured', () => {
    const [marks, sum] = said.trim().split(' ');
    const { samples, value } = sources.get(ORIGIN_MARK)!;
    expect(counters.samples_lost_ring + counters.traces_lost_ring).toBe(0);
    expect([samples, value]).toEqual([Number(marks), BigInt(sum!)]);
    const cpu = sources.get(Origin.CPU)!;
    expect(cpu.value).toBe(BigInt(cpu.samples));
    const all = [...sources.values()].reduce((total, source) => total + source.samples, 0);
    expect(counters.samples).toBe(all + counters.samples_nested);
    expect(counters.samples_sent).toBe(all);
  });

  it('leave out an event that came upon another of their kind, and count it', () => {
    expect(counters.samples_nested).toBeGreaterThan(0);
    expect(sources.get(ORIGIN_TIMER)!.samples).toBeGreaterThan(0);
  });

  it('have right stacks, both', () => {
    const marked = stacksOf(ORIGIN_MARK).map(({ user }) => user);
    const [first] = marked;
    expect(new Set(marked.map(String))).toEqual(new Set([String(first)]));
    const markCall = mostFrequent(first!);
    expect(count(first!, markCall)).toBe(MARK_DEPTH - 1);
    const ticks = [...stacksOf(Origin.CPU), ...stacksOf(ORIGIN_TIMER)].map(({ user }) => user);
    const working = ticks.find((user) => user.length > WORK_DEPTH && !user.includes(markCall));
    const workCall = mostFrequent(working!);
    expect(count(working!, workCall)).toBe(WORK_DEPTH - 1);
    for (const user of ticks) {
      const [marks, works] = [count(user, markCall), count(user, workCall)];
      expect(marks, String(user)).toBeLessThan(MARK_DEPTH);
      expect(works, String(user)).toBeLessThan(WORK_DEPTH);
      expect(Math.min(marks, works), String(user)).toBe(0);
    }
  });
});
