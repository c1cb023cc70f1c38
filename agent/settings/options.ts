/**
 * Every setting of the agent, in one table: flag, environment variable (EVERYFRAME_…, or the OpenTelemetry
 * profiler's OTEL_PROFILING_AGENT_…), default and meaning. The flags carry that profiler's names, so that this
 * agent starts where that one did.
 */
import * as v from 'valibot';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { defaultsOf, flagOf, type Setting, settingName } from '../../common/base/setting.ts';
import {
  type Environment,
  environmentLayer,
  type LayeredSettings,
  mergeLayers,
  type SettingLayer,
  withOrigin,
  withoutSettings,
} from '../../common/base/setting-layers.ts';
import { parseBytes } from '../../common/base/size.ts';
import { TELEMETRY_SETTING, telemetryKind } from '../../common/base/telemetry-setting.ts';
import { BadEvent, type EventSpec, parseEvent } from '../events/event-spec.ts';
import { exporterEnvironment } from './exporter-environment.ts';

const METRICS_ADDRESS_HELP =
  'answer /healthz, /readyz and /metrics (Prometheus) there, to whoever asks (default: nowhere)';

export const AGENT_SETTINGS: readonly Setting[] = [
  {
    flag: 'collection-agent',
    value: 'HOST:PORT',
    repeatable: true,
    help: 'OTLP receiver to push profiles to: host:port, http:// or https://, dns:///host:port, unix:PATH; repeatable, each with a queue of its own',
  },
  {
    flag: 'protocol',
    value: 'grpc|http/protobuf',
    default: 'grpc',
    help: 'how to push; http/protobuf: to /v1development/profiles, unless the URL has a path',
  },
  { flag: 'disable-tls', help: 'push without TLS' },
  { flag: 'tls-ca', value: 'FILE', help: 'certificate authorities to trust instead of the built-in ones' },
  { flag: 'tls-cert', value: 'FILE', help: 'client certificate' },
  { flag: 'tls-key', value: 'FILE', help: 'key of the client certificate' },
  {
    flag: 'header',
    value: 'NAME=VALUE',
    repeatable: true,
    isSecret: true,
    help: 'header (gRPC metadata) to send; repeatable',
  },
  {
    flag: 'headers-file',
    value: 'FILE',
    help: 'gRPC metadata, NAME=VALUE a line (keeps tokens off the command line)',
  },
  {
    flag: 'compression',
    value: 'auto|gzip|none',
    default: 'auto',
    help: 'compression of pushed profiles; auto: gzip, but none to a receiver on this machine',
  },
  {
    flag: 'export-timeout',
    value: 'DURATION',
    default: '5s',
    help: 'how long a push may take; one that took longer is made again, with more time',
  },
  { flag: 'samples-per-second', value: 'HZ', default: '20', help: 'samples a second on each CPU' },
  {
    flag: 'reporter-interval',
    value: 'DURATION',
    default: '5s',
    help: 'time between two pushes; the first one comes after a second',
  },
  {
    flag: 'reporter-jitter',
    value: 'FRACTION',
    default: '0.2',
    help: 'random share of the interval, either way',
  },
  { flag: 'max-user-frames', value: 'N', default: '1023', help: 'user frames a stack, 1 to 1023' },
  {
    flag: 'symbols',
    value: 'full|names|off',
    default: 'full',
    help: 'names of native code: with lines and inlined functions, functions only, or none',
  },
  {
    flag: 'symbol-cache',
    value: 'DIR',
    help: 'keep names of native code and unwind tables there for later runs, or off (default: /var/cache/everyframe for root, else below ~/.cache)',
  },
  {
    flag: 'debuginfod',
    help: 'fetch debug information that is missing here from DEBUGINFOD_URLS, which tells those servers what runs here',
  },
  {
    flag: 'no-source-maps',
    help: 'show JavaScript as it runs, not the sources (TypeScript) that its source maps lead to',
  },
  {
    flag: 'no-labels',
    help: "leave out what programs say of themselves: OpenTelemetry's process context, Go's pprof labels, names of Erlang's processes",
  },
  {
    flag: 'goroutine-ids',
    help: 'show the goroutine of each sample in Go (go.goroutine.id), the Erlang process (beam.process.id), which keeps samples of each apart',
  },
  { flag: 'off-cpu', help: 'sample where threads wait as well, and for how long' },
  {
    flag: 'off-cpu-budget',
    value: 'N',
    default: '200',
    help: 'stacks of waits to take a second on each CPU: of short waits some stand for others',
  },
  {
    flag: 'off-cpu-threshold',
    value: 'P',
    default: '0',
    help: 'take the stack of each wait with this probability in place of the budget, 0 to 1; more than 0 means --off-cpu',
  },
  {
    flag: 'event',
    value: 'SPEC',
    repeatable: true,
    help: 'sample this event in place of CPU time: page-faults, cycles, tracepoint:CATEGORY:NAME, uprobe:PATH:SYMBOL, usdt:PATH:PROVIDER:NAME, malloc and others (docs/events.md); repeatable, cpu-clock is CPU time',
  },
  {
    flag: 'event-budget',
    value: 'N',
    default: '100',
    help: 'stacks of each event to take a second on each CPU: of more events some stand for others',
  },
  {
    flag: 'cgroup',
    value: 'CGROUP',
    repeatable: true,
    help: 'sample only the processes of this cgroup and of those below it: its path, or its name (nginx.service), or the first digits of a container ID; * stands for any characters; repeatable',
  },
  {
    flag: 'exclude-cgroup',
    value: 'CGROUP',
    repeatable: true,
    help: 'sample no process of this cgroup and of those below it, named as for --cgroup; repeatable',
  },
  { flag: 'send-idle-frames', help: 'sample the idle task as well' },
  {
    flag: 'probabilistic-threshold',
    value: 'PERCENT',
    default: '100',
    help: 'chance to sample in an interval; 100: always',
  },
  {
    flag: 'probabilistic-interval',
    value: 'DURATION',
    default: '1m',
    help: 'length of such an interval, 1m to 5m',
  },
  {
    flag: 'max-queue-bytes',
    value: 'BYTES',
    default: '33554432',
    help: 'memory for profiles that wait for the receiver',
  },
  {
    flag: 'max-memory',
    value: 'SIZE',
    default: '256MiB',
    help: 'memory of the agent, its BPF maps included: caches and unwind tables leave by least use',
  },
  {
    flag: 'max-cpu',
    value: 'PERCENT',
    default: '50',
    help: 'CPU time of the agent in the long run, of one core: beyond it samples are left out by chance and counted; 0: no limit',
  },
  { flag: 'max-table-bytes', value: 'BYTES', default: '134217728', help: 'kernel memory for unwind tables' },
  { flag: 'self-metrics', help: "push the agent's own counters as OTLP metrics" },
  { flag: 'metrics-address', value: 'HOST:PORT', help: METRICS_ADDRESS_HELP },
  TELEMETRY_SETTING,
  { flag: 'verbose', help: 'log more' },
];

/** What says where profiles go: `everyframe run` has a collector of its own. */
export const DESTINATION_FLAGS: readonly string[] = [
  ...[
    'collection-agent',
    'protocol',
    'disable-tls',
    'tls-ca',
    'tls-cert',
    'tls-key',
    'header',
    'headers-file',
  ],
  'export-timeout',
];

/** What takes effect at once when settings are read again; the others do at the next start. */
export const LIVE_SETTINGS: ReadonlySet<string> = new Set(
  [
    ...DESTINATION_FLAGS,
    ...['compression', 'max-queue-bytes', 'reporter-interval', 'reporter-jitter', 'verbose'],
  ].map(settingName),
);

/** Less than what it takes to run at all. */
const MIN_MEMORY = 64 << 20;

const UNITS: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

const DURATION = /^\d+(?:\.\d+)?$|^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/;

/** `500ms`, `5s`, `1m30s`, `2h`, or a bare number of seconds, in milliseconds. */
export function parseDuration(text: string): number {
  if (!DURATION.test(text.trim()))
    throw new BadSetting(`"${text}" is not a valid duration: write 500ms, 5s, 1m or 2h`);
  const parts = text.matchAll(/([\d.]+)(ns|us|µs|ms|s|m|h)?/g);
  return [...parts].reduce((sum, [, count, unit = 's']) => sum + Number(count) * UNITS[unit]!, 0);
}

const number = (flags: string, min: number, max: number, integer = true) => {
  const isValid = (text: string): boolean => {
    const n = text.trim() === '' ? Number.NaN : Number(text);
    return n >= min && n <= max && (!integer || Number.isInteger(n));
  };
  const kind = integer ? 'a whole number' : 'a number';
  return v.pipe(
    v.string(),
    v.check(isValid, ({ input }) => `${flags} is "${input}": give ${kind} from ${min} to ${max}`),
    v.transform(Number),
    v.metadata({ min, max, integer }),
  );
};

const duration = (flag: string, minMs: number, maxMs: number) =>
  v.pipe(
    v.string(),
    v.check(
      (text) => {
        const ms = DURATION.test(text.trim()) ? parseDuration(text) : Number.NaN;
        return ms >= minMs && ms <= maxMs;
      },
      ({ input }) =>
        `--${flag} is "${input}": give ${minMs / 1000}s to ${maxMs / 1000}s, such as 500ms, 5s or 1m`,
    ),
    v.transform(parseDuration),
  );

const optionalText = v.optional(v.string());
const onOff = v.optional(v.boolean(), false);
const list = v.optional(
  v.pipe(
    v.union([v.string(), v.array(v.string())]),
    v.transform((one) => [one].flat()),
  ),
  [],
);

const cgroups = (flag: string) =>
  v.pipe(
    list,
    v.check(
      (texts) => texts.every((text) => text.trim() !== ''),
      `${flag} is empty: give a path, a name or a container ID`,
    ),
  );
const eventsOf = (texts: string[]): EventSpec[] => texts.map(parseEvent);
const areEvents = (texts: string[]): boolean => whyNoEvents(texts) === '';

/** '' where each is one. */
function whyNoEvents(texts: string[]): string {
  try {
    eventsOf(texts);
    return '';
  } catch (error) {
    if (!(error instanceof BadEvent)) throw error;
    return `--event: ${error.message}`;
  }
}

/** What the settings are once they are read, by name. */
export const agentSchema = v.strictObject({
  collectionAgent: list,
  protocol: v.picklist(
    ['grpc', 'http/protobuf'],
    ({ input }) => `--protocol is ${input}: give grpc or http/protobuf`,
  ),
  disableTls: onOff,
  tlsCa: optionalText,
  tlsCert: optionalText,
  tlsKey: optionalText,
  header: list,
  headersFile: optionalText,
  compression: v.picklist(
    ['auto', 'gzip', 'none'],
    ({ input }) => `--compression is ${input}: give auto, gzip or none`,
  ),
  exportTimeout: duration('export-timeout', 100, 3_600_000),
  samplesPerSecond: number('--samples-per-second or -F', 1, 10_000),
  reporterInterval: duration('reporter-interval', 100, 3_600_000),
  reporterJitter: number('--reporter-jitter', 0, 1, false),
  maxUserFrames: number('--max-user-frames', 1, 1023),
  symbols: v.picklist(
    ['full', 'names', 'off'],
    ({ input }) => `--symbols is ${input}: give full, names or off`,
  ),
  symbolCache: optionalText,
  debuginfod: onOff,
  noSourceMaps: onOff,
  noLabels: onOff,
  goroutineIds: onOff,
  offCpu: onOff,
  offCpuBudget: number('--off-cpu-budget', 1, 10_000),
  offCpuThreshold: number('--off-cpu-threshold', 0, 1, false),
  event: v.pipe(
    list,
    v.check(areEvents, ({ input }) => whyNoEvents(input)),
    v.transform(eventsOf),
  ),
  eventBudget: number('--event-budget', 1, 10_000),
  cgroup: cgroups('--cgroup'),
  excludeCgroup: cgroups('--exclude-cgroup'),
  sendIdleFrames: onOff,
  probabilisticThreshold: number('--probabilistic-threshold', 1, 100),
  probabilisticInterval: duration('probabilistic-interval', 60_000, 300_000),
  maxQueueBytes: number('--max-queue-bytes', 1 << 20, 2 ** 40),
  maxMemory: v.pipe(
    v.string(),
    v.transform(parseBytes),
    v.check((bytes) => bytes >= MIN_MEMORY, '--max-memory: give a size of 64MiB or more, such as 256MiB'),
  ),
  maxCpu: number('--max-cpu', 0, 10_000),
  maxTableBytes: number('--max-table-bytes', 4 << 20, 2 ** 40),
  selfMetrics: onOff,
  metricsAddress: optionalText,
  telemetry: telemetryKind,
  verbose: onOff,
});

/** Durations are in milliseconds. */
export type AgentOptions = v.InferOutput<typeof agentSchema> & {
  /** Where each value comes from. */
  origins: Readonly<Record<string, string>>;
  /** What the environment says that can't be used. */
  notes: readonly string[];
};

/** A probability alone asks for it, as with the OpenTelemetry profiler. */
export const samplesWaits = ({
  offCpu,
  offCpuThreshold,
}: Pick<AgentOptions, 'offCpu' | 'offCpuThreshold'>): boolean => offCpu || offCpuThreshold > 0;

export interface OtherPlaces {
  env?: Environment;
  /** Weaker than the environment. */
  file?: SettingLayer;
  /** Flags whose settings come from nowhere but flags. */
  except?: readonly string[];
  /** Of OTEL_EXPORTER_OTLP_…: PROFILES. */
  exporterSignal?: string;
}

/** The other profiler's come second. */
export const ENVIRONMENT_PREFIXES: readonly string[] = ['EVERYFRAME_', 'OTEL_PROFILING_AGENT_'];

/** Flags win over the environment, that over the file, and all over the defaults. Throws {@link BadSetting}. */
export function parseAgentOptions(flags: Record<string, unknown>, places: OtherPlaces = {}): AgentOptions {
  const { values, origins, notes } = layerAgentSettings(flags, places);
  const result = v.safeParse(agentSchema, values);
  if (!result.success) throw badSettings(result.issues, origins);
  return { ...result.output, origins, notes };
}

/** As they are written, none checked. `notes`: what the environment says that can't be used. */
export function layerAgentSettings(
  flags: Record<string, unknown>,
  { env = {}, file, except = [], exporterSignal }: OtherPlaces = {},
): LayeredSettings & { notes: string[] } {
  const exporter = except.includes('collection-agent')
    ? { values: {}, variables: {}, notes: [] }
    : exporterEnvironment(env, exporterSignal);
  const outside = [
    ...(file ? [file] : []),
    { values: exporter.values, origin: (name: string) => exporter.variables[name]! },
    environmentLayer(AGENT_SETTINGS, env, ENVIRONMENT_PREFIXES),
  ];
  const names = new Set(except.map(settingName));
  const merged = mergeLayers([
    { values: defaultsOf(AGENT_SETTINGS), origin: () => 'default' },
    ...outside.map((layer) => withoutSettings(layer, names)),
    { values: flags, origin: flagOf },
  ]);
  return { ...merged, notes: exporter.notes };
}

/** All that is wrong, a line each. */
function badSettings(
  issues: readonly v.InferIssue<typeof agentSchema>[],
  origins: Record<string, string>,
): BadSetting {
  const lines = issues.map(({ path, message }) => withOrigin(origins[String(path?.[0]?.key)], message));
  return new BadSetting(lines.join('\n'));
}
