/**
 * `make && node dist/test/bench/feeders.js [--seconds 30]`: the OpenTelemetry eBPF profiler and the OpenTelemetry Collector
 * feed our collector as they are. EVERYFRAME_PEERS names the directory that holds them (`ebpf-profiler`, `otelcol`); they
 * are not part of this repository. Prints what docs/store.md ("Other senders") shows; fails when anything is refused, rejected, counted
 * differently or shown under a wrong name. Needs root.
 */
import type { ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type RunningCollector, startCollectorProcess } from '../support/collector.ts';
import { end, folder, freePort, peers, run, untilListening } from './peer-processes.ts';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '30' } } });
interface Status {
  requests: { accepted: number; refused: number; repeated: number };
  refusals: unknown[];
  rejections: unknown[];
  samples: { received: number; stored: number; rejected: number };
}
interface Values {
  values: { value: string; samples: number }[];
}
interface Top {
  samples: number;
  functions: { name: string; self: number; total: number }[];
}

/** Functions of a program whose names no other program has; `everything` calls the others in turn. */
const FUNCTIONS = ['everything', 'one_third', 'two_thirds'];
const PYTHON = `
def one_third(end):
    import time
    while time.thread_time() < end: pass
def two_thirds(end):
    import time
    while time.thread_time() < end: pass
def everything():
    import time
    while True:
        now = time.thread_time()
        one_third(now + 0.05)
        two_thirds(now + 0.15)
everything()
`;

const failures: string[] = [];
const print = (line: string): void => console.log(line);
const check = (holds: boolean, what: string): void => {
  if (!holds) failures.push(what);
};

const python = run('python3', ['-c', PYTHON]);
print('| way | requests | refused | samples stored | rejected | of the known program | kinds of frames |');
print('|---|---|---|---|---|---|---|');
await direct();
await throughCollector();
python.kill('SIGKILL');
for (const failure of failures) console.log(`wrong: ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);

async function direct(): Promise<void> {
  const ours = await startCollectorProcess();
  const profiler = await startProfiler(ours.grpc);
  await untilFed(ours);
  await sleep(Number(values.seconds) * 1000);
  await end(profiler);
  await report('the profiler, gRPC', ours);
  await ours.end();
}

/** One Collector passes the same on by gRPC and HTTP, and writes it to a file: all three must have as many samples. */
async function throughCollector(): Promise<void> {
  const [byGrpc, byHttp, byJson] = [
    await startCollectorProcess(),
    await startCollectorProcess(),
    await startCollectorProcess(),
  ];
  const port = await freePort();
  const file = join(folder, 'seen.json');
  const config = join(folder, 'otelcol.yaml');
  const base = (url: string): string => url.replace(/\/v1development\/profiles$/, '');
  writeFileSync(
    config,
    `receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:${port}, max_recv_msg_size_mib: 64}}}}
exporters:
  file: {path: "${file}"}
  otlp: {endpoint: "${byGrpc.grpc}", tls: {insecure: true}}
  otlphttp: {endpoint: "${base(byHttp.http)}"}
  otlphttp/json: {endpoint: "${base(byJson.http)}", encoding: json}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [file, otlp, otlphttp, otlphttp/json]}}
`,
  );
  const flags = ['--config', config, '--feature-gates=service.profilesSupport'];
  const collector = run(join(peers, 'otelcol'), flags, 'otelcol.log');
  await untilListening(port, collector);
  const profiler = await startProfiler(`127.0.0.1:${port}`);
  await untilFed(byGrpc);
  await sleep(Number(values.seconds) * 1000);
  await end(profiler);
  await end(collector);
  const { samples: sent, byFunction } = countInFile(file);
  for (const [way, ours] of [
    ['Collector, otlp', byGrpc],
    ['Collector, otlphttp', byHttp],
    ['Collector, otlphttp in JSON', byJson],
  ] as const) {
    const { stored, total } = await report(way, ours);
    check(stored === sent, `${way}: ${stored} samples stored, the Collector wrote ${sent} to its file`);
    for (const [name, samples] of byFunction)
      check(total(name) === samples, `${way}: ${name} in ${total(name)} samples, in the file ${samples}`);
    await ours.end();
  }
  const inFile = [...byFunction].map(([name, samples]) => `${name} in ${samples}`).join(', ');
  print(`\nThe Collector wrote ${sent} samples to its own file, ${inFile}.`);
}

/** On a busy machine the profiler takes a while to its first samples. */
async function untilFed(ours: RunningCollector): Promise<void> {
  for (let i = 0; i < 240; i++) {
    const { samples, requests } = await ours.query<Status>('/api/v1/status');
    if (samples.received > 0 || requests.refused > 0) return;
    await sleep(500);
  }
  throw new Error(`nothing arrived: ${readFileSync(join(folder, 'ebpf-profiler.log'), 'utf8')}`);
}

interface Report {
  stored: number;
  /** Samples with the function in their stack. */
  total(name: string): number;
}

async function report(way: string, ours: RunningCollector): Promise<Report> {
  const status = await ours.query<Status>('/api/v1/status');
  const where = encodeURIComponent(`pid=${python.pid}`);
  const top = await ours.query<Top>(`/api/v1/top?range=all&limit=1000&where=${where}`);
  const kinds = await ours.query<Values>('/api/v1/values?range=all&label=kind');
  const names = await ours.query<Values>(`/api/v1/values?range=all&label=process&where=${where}`);
  const total = (name: string): number => top.functions.find((one) => one.name === name)?.total ?? 0;
  const { requests, samples, refusals, rejections } = status;
  const known = FUNCTIONS.map((name) => `${name} ${total(name)}`).join(', ');
  print(
    `| ${way} | ${requests.accepted} | ${requests.refused} | ${samples.stored} | ${samples.rejected} | ${top.samples} as ${names.values.map(({ value }) => value)}: ${known} | ${kinds.values.map(({ value }) => value).join(', ')} |`,
  );
  const problems = JSON.stringify([refusals, rejections]);
  check(requests.accepted > 0 && requests.refused === 0 && samples.rejected === 0, `${way}: ${problems}`);
  check(top.samples > 30, `${way}: ${top.samples} samples of the known program`);
  check(total('everything') > 0.8 * top.samples, `${way}: everything() is in ${total('everything')} only`);
  return { stored: samples.stored, total };
}

/** What the Collector's own file says, read by nothing of ours. Samples are timestamps: the profiler sends no values. */
function countInFile(file: string): { samples: number; byFunction: Map<string, number> } {
  const byFunction = new Map(FUNCTIONS.map((name) => [name, 0]));
  let count = 0;
  for (const line of readFileSync(file, 'utf8').split('\n').filter(Boolean)) {
    const { resourceProfiles = [], dictionary } = JSON.parse(line) as FileRequest;
    const { stringTable, functionTable, locationTable, stackTable } = dictionary;
    const namesOf = (stack = 0): Set<string | undefined> =>
      new Set(
        (stackTable[stack]?.locationIndices ?? [])
          .flatMap((index) => locationTable[index]?.lines ?? [])
          .map(({ functionIndex = 0 }) => stringTable[functionTable[functionIndex]?.nameStrindex ?? 0]),
      );
    const samples = resourceProfiles
      .flatMap(({ scopeProfiles = [] }) => scopeProfiles)
      .flatMap(({ profiles = [] }) => profiles)
      .flatMap((profile) => profile.samples ?? []);
    for (const { stackIndex, timestampsUnixNano = [] } of samples) {
      count += timestampsUnixNano.length;
      const names = namesOf(stackIndex);
      for (const [name, before] of byFunction)
        if (names.has(name)) byFunction.set(name, before + timestampsUnixNano.length);
    }
  }
  return { samples: count, byFunction };
}

interface FileRequest {
  resourceProfiles?: {
    scopeProfiles?: {
      profiles?: { samples?: { stackIndex?: number; timestampsUnixNano?: string[] }[] }[];
    }[];
  }[];
  dictionary: {
    stringTable: string[];
    functionTable: { nameStrindex?: number }[];
    locationTable: { lines?: { functionIndex?: number }[] }[];
    stackTable: { locationIndices?: number[] }[];
  };
}

async function startProfiler(address: string): Promise<ChildProcess> {
  const flags = ['-collection-agent', address, '-disable-tls', '-samples-per-second', '97'];
  const child = run(join(peers, 'ebpf-profiler'), flags, 'ebpf-profiler.log');
  await sleep(5000);
  if (child.exitCode !== null) throw new Error(readFileSync(join(folder, 'ebpf-profiler.log'), 'utf8'));
  return child;
}
