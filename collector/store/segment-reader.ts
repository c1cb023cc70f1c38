import { SEGMENT_MS, type Segment, type SegmentProcess } from './segment.ts';
import type { ProcessCount, SampleFilter, TimeRange, Window } from './store.ts';

/** Linux allows at most 8,192 CPUs. */
const MAX_CPUS = 8192;

/** Scans the columns of every segment that overlaps the range: tens of millions of rows a second. */
export function readWindow(segments: readonly Segment[], filter: SampleFilter, steps: number): Window {
  const window: Window = {
    parts: [],
    samples: 0,
    allSamples: 0,
    cpuNanos: 0,
    cpus: 0,
    timeline: new Float64Array(steps),
  };
  const cpusByHost = new Map<string, Uint8Array>();
  for (const segment of overlapping(segments, filter)) scanSegment(segment, filter, window, cpusByHost);
  for (const seen of cpusByHost.values()) window.cpus += seen.reduce((sum, one) => sum + one, 0);
  return window;
}

function scanSegment(
  segment: Segment,
  filter: SampleFilter,
  window: Window,
  cpusByHost: Map<string, Uint8Array>,
): void {
  const { times, nodes, processes, cpus, weights, length } = segment.columns;
  const { tree, frames } = segment;
  const selfCounts = new Float64Array(tree.size);
  const wanted = segment.processes.map(({ name }) => filter.process === undefined || name === filter.process);
  const periods = segment.processes.map((process) => process.periodNanos);
  const hostCpus = segment.processes.map((process) => seenCpus(process, cpusByHost));
  const from = filter.fromMs - segment.startMs;
  const to = filter.toMs - segment.startMs;
  const { timeline } = window;
  const stepsPerMs = timeline.length / (filter.toMs - filter.fromMs);
  const before = window.samples;
  for (let row = 0; row < length; row++) {
    const time = times[row]!;
    if (time < from || time >= to) continue;
    const weight = weights === undefined ? 1 : weights[row]!;
    const process = processes[row]!;
    window.allSamples += weight;
    const cpu = cpus[row]!;
    if (cpu >= 0 && cpu < MAX_CPUS) hostCpus[process]![cpu] = 1;
    if (!wanted[process]) continue;
    selfCounts[nodes[row]!]! += weight;
    window.samples += weight;
    window.cpuNanos += weight * periods[process]!;
    timeline[Math.floor((time - from) * stepsPerMs)]! += weight;
  }
  if (window.samples === before) return;
  // Copies: the tree may grow, or its segment be dropped, before an asynchronous reader is done.
  const parents = tree.parents.slice(0, tree.size);
  window.parts.push({
    frames: frames.frames,
    parents,
    nodeFrames: tree.frames.slice(0, tree.size),
    selfCounts,
  });
}

function seenCpus(process: SegmentProcess, cpusByHost: Map<string, Uint8Array>): Uint8Array {
  let seen = cpusByHost.get(process.host);
  if (seen === undefined) {
    seen = new Uint8Array(MAX_CPUS);
    cpusByHost.set(process.host, seen);
  }
  return seen;
}

interface ProcessTally extends ProcessCount {
  tids: Set<number>;
}

/** One entry per execution of a process, in no order. */
export function readProcesses(segments: readonly Segment[], range: TimeRange): ProcessCount[] {
  const tallies = new Map<string, ProcessTally>();
  for (const segment of overlapping(segments, range)) tallySegment(segment, range, tallies);
  return [...tallies.values()]
    .filter(({ samples }) => samples > 0)
    .map(({ tids, ...count }) => ({ ...count, threads: tids.size }));
}

function tallySegment(segment: Segment, range: TimeRange, tallies: Map<string, ProcessTally>): void {
  const { times, processes, tids, weights, length } = segment.columns;
  const from = range.fromMs - segment.startMs;
  const to = range.toMs - segment.startMs;
  const byIndex = segment.processes.map((process) => tallyOf(process, tallies));
  let lastProcess = -1;
  let lastTid = -1;
  for (let row = 0; row < length; row++) {
    const time = times[row]!;
    if (time < from || time >= to) continue;
    const process = processes[row]!;
    const tally = byIndex[process]!;
    tally.samples += weights === undefined ? 1 : weights[row]!;
    const tid = tids[row]!;
    // A thread's samples arrive in runs: most rows need no look-up.
    if (tid === lastTid && process === lastProcess) continue;
    tally.tids.add(tid);
    lastTid = tid;
    lastProcess = process;
  }
}

function tallyOf(process: SegmentProcess, tallies: Map<string, ProcessTally>): ProcessTally {
  const { name, pid, path, containerId, host, startUnixNano } = process;
  const key = `${pid} ${startUnixNano} ${host} ${name}`;
  let tally = tallies.get(key);
  if (tally === undefined) {
    tally = { name, pid, path, containerId, samples: 0, threads: 0, tids: new Set() };
    tallies.set(key, tally);
  }
  return tally;
}

function overlapping(segments: readonly Segment[], { fromMs, toMs }: TimeRange): Segment[] {
  return segments.filter(({ startMs }) => startMs < toMs && startMs + SEGMENT_MS > fromMs);
}
