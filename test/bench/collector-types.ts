/**
 * `EVERYFRAME_PEERS=DIR node dist/test/bench/collector-types.js` (root): the agent with --off-cpu sends all its types to an
 * OpenTelemetry Collector as it is, which writes them to a file and passes them on to our collector. Fails where the two differ, or
 * where a type is missing.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TypesAnswer } from '../../collector/api/types.ts';
import { AgentProcess } from '../support/agent-process.ts';
import { startCollectorProcess } from '../support/collector.ts';
import { ROOT } from './measure.ts';
import { end, folder, freePort, peers, run, untilListening } from './peer-processes.ts';

const SECONDS = 10;
const TYPES = ['samples/count', 'off_cpu/nanoseconds', 'thread_time/nanoseconds'];

interface Sum {
  samples: number;
  total: number;
}

const ours = await startCollectorProcess();
const port = await freePort();
const [file, config] = [join(folder, 'seen.json'), join(folder, 'otelcol.yaml')];
writeFileSync(
  config,
  `receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:${port}, max_recv_msg_size_mib: 64}}}}
exporters:
  file: {path: "${file}"}
  otlp: {endpoint: "${ours.grpc}", tls: {insecure: true}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [file, otlp]}}
`,
);
const flags = ['--config', config, '--feature-gates=service.profilesSupport'];
const otelcol = run(join(peers, 'otelcol'), flags, 'otelcol.log');
await untilListening(port, otelcol);
const agent = new AgentProcess(`127.0.0.1:${port}`, '--off-cpu', '--reporter-interval', '2s');
const program = join(folder, 'waits');
execFileSync('gcc', ['-O1', '-g', '-pthread', '-o', program, join(ROOT, 'test/fixtures/waits.c')]);
const said = execFileSync(program, ['sleeps', String(SECONDS)], { encoding: 'utf8' });
await agent.stop();
await end(otelcol);

const inFile = sumsOfFile(file);
const { types } = await ours.query<TypesAnswer>('/api/v1/types?range=all');
const problems: string[] = [];
console.log("| type | samples in the Collector's file | their sum | in our store behind it | their sum |");
console.log('|---|---|---|---|---|');
for (const name of TYPES) {
  const seen = inFile.get(name) ?? { samples: 0, total: 0 };
  const stored = types.find((each) => `${each.type}/${each.unit}` === name) ?? { samples: 0, total: 0 };
  console.log(`| ${name} | ${seen.samples} | ${seen.total} | ${stored.samples} | ${stored.total} |`);
  if (seen.samples === 0 || seen.samples !== stored.samples || seen.total !== stored.total)
    problems.push(name);
}
console.log(`\nThe program says: ${said.trim().replaceAll('\n', ', ')} ns.`);
await ours.end();
for (const name of problems) console.log(`wrong: ${name}`);
process.exit(problems.length === 0 ? 0 : 1);

/** Read by nothing of ours. A sample without values counts 1 for each timestamp. */
function sumsOfFile(path: string): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const line of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
    const { resourceProfiles = [], dictionary } = JSON.parse(line) as FileRequest;
    const nameOf = ({ typeStrindex = 0, unitStrindex = 0 }: ValueType): string =>
      `${dictionary.stringTable[typeStrindex]}/${dictionary.stringTable[unitStrindex]}`;
    const profiles = resourceProfiles
      .flatMap(({ scopeProfiles = [] }) => scopeProfiles)
      .flatMap(({ profiles: all = [] }) => all);
    for (const { sampleType, samples = [] } of profiles) {
      const name = nameOf(sampleType);
      const sum = sums.get(name) ?? { samples: 0, total: 0 };
      sums.set(name, sum);
      for (const { values, timestampsUnixNano = [] } of samples) {
        sum.samples += timestampsUnixNano.length;
        sum.total += values?.reduce((total, value) => total + Number(value), 0) ?? timestampsUnixNano.length;
      }
    }
  }
  return sums;
}

interface ValueType {
  typeStrindex?: number;
  unitStrindex?: number;
}
interface FileRequest {
  resourceProfiles?: {
    scopeProfiles?: {
      profiles?: {
        sampleType: ValueType;
        samples?: { values?: string[]; timestampsUnixNano?: string[] }[];
      }[];
    }[];
  }[];
  dictionary: { stringTable: string[] };
}
