/**
 * Every setting of the collector, in one table: flag, default and meaning, for `everyframe collector` and for the
 * collector that `everyframe run` starts.
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
import { TRACE_ID_PLACE } from '../../common/profile/model/link.ts';
import { age, parseAge } from './age.ts';
import { checkTenants, tenantAge, tenantToken } from './tenants.ts';

export interface CollectorSetting extends Setting {
  /** Read where the flag is not given: its URL may hold a password. */
  env?: string;
  /** Not for people. */
  isHidden?: boolean;
  /** What `everyframe run` says of it instead; false: it is not one of its flags. */
  inRun?: string | false;
}

/** Samples older than this are dropped where nothing else is asked for: in memory, and where they are kept. */
const AGES = { inMemory: '1h', kept: '30d' };

/** Whose process the collector of `everyframe run` is. */
export const UNPRIVILEGED_USER = 'nobody';

export const COLLECTOR_SETTINGS: readonly CollectorSetting[] = [
  { flag: 'grpc-listen', value: 'HOST:PORT', default: '127.0.0.1:11000', help: 'OTLP over gRPC' },
  { flag: 'http-listen', value: 'HOST:PORT', default: '127.0.0.1:4318', help: 'OTLP over HTTP' },
  { flag: 'page-listen', value: 'HOST:PORT', default: '127.0.0.1:11080', help: 'the page and its API' },
  {
    flag: 'max-memory',
    value: 'SIZE',
    default: '256MiB',
    help: 'room for samples, such as 512MiB or 2GiB: the oldest are dropped',
    inRun: "room for the collector's samples, such as 512MiB or 2GiB: the oldest are dropped",
  },
  {
    flag: 'data',
    value: 'DIR',
    help: 'keep samples in this directory, instead of in memory',
    inRun: `keep samples in this directory of user ${UNPRIVILEGED_USER}, instead of in memory`,
  },
  {
    flag: 'clickhouse',
    value: 'URL',
    help: 'keep samples in this ClickHouse, such as http://USER:PASSWORD@HOST:8123/DATABASE (or EVERYFRAME_CLICKHOUSE)',
    env: 'EVERYFRAME_CLICKHOUSE',
    isSecret: true,
    inRun: false,
  },
  {
    flag: 'max-disk',
    value: 'SIZE',
    default: '10GiB',
    help: 'with --data: room for samples, the oldest are dropped',
  },
  {
    flag: 'max-age',
    value: 'LENGTH',
    help: `drop samples older than this, such as 6h or 7d (default: ${AGES.inMemory}, with --data or --clickhouse ${AGES.kept})`,
    inRun: `drop samples older than this, such as 6h or 7d (default: ${AGES.inMemory}, with --data ${AGES.kept})`,
  },
  { flag: 'tls-cert', value: 'FILE', help: 'serve TLS with this certificate (PEM), on every address' },
  { flag: 'tls-key', value: 'FILE', help: 'its private key (PEM)' },
  {
    flag: 'token-file',
    value: 'FILE',
    help: 'take only requests with the token in this file, on every address',
  },
  {
    flag: 'tenant',
    value: 'NAME=FILE',
    repeatable: true,
    help: 'serve several: whoever comes with the token in this file has samples and a page of its own (repeatable)',
    inRun: false,
  },
  {
    flag: 'tenant-max-age',
    value: 'NAME=LENGTH',
    repeatable: true,
    help: "drop this tenant's samples when older than this, instead of --max-age (repeatable)",
    inRun: false,
  },
  { flag: 'allow-anyone', help: 'listen beyond this machine without a token' },
  {
    flag: 'max-sender-rate',
    value: 'SIZE',
    default: '32MiB',
    help: 'what one address may send a second; more has to wait',
  },
  {
    flag: 'forward-to',
    value: 'HOST:PORT',
    help: 'pass on all that arrives to this OTLP gRPC receiver too: with TLS, unless it is on this machine or written http://HOST:PORT',
  },
  { flag: 'forward-tls-ca', value: 'FILE', help: 'certificate authorities to trust there' },
  { flag: 'forward-headers-file', value: 'FILE', help: 'gRPC metadata to send there, NAME=VALUE a line' },
  {
    flag: 'max-forward-queue',
    value: 'SIZE',
    default: '64MiB',
    help: 'memory for what waits for it: the oldest is dropped',
  },
  {
    flag: 'source',
    value: 'DIR',
    repeatable: true,
    help: 'show source files below this directory on the page, where samples are in them (repeatable)',
    inRun: `show source files below this directory, as far as user ${UNPRIVILEGED_USER} can read them (repeatable)`,
  },
  {
    flag: 'trace-url',
    value: 'URL',
    help: 'link the traces of samples to where they are shown, such as http://HOST:16686/trace/{trace_id}',
  },
  {
    flag: 'metrics-address',
    value: 'HOST:PORT',
    help: 'answer /healthz, /readyz and /metrics (Prometheus) there, to whoever asks (default: nowhere; the page has the first two)',
    inRun: false,
  },
  { ...TELEMETRY_SETTING, inRun: false },
  {
    flag: 'user',
    value: 'NAME',
    help: 'become this user once everything listens (needs root)',
    inRun: false,
  },
  {
    flag: 'plain-loopback',
    help: 'with TLS: a gRPC server without, on loopback',
    isHidden: true,
    inRun: false,
  },
  { flag: 'child', help: 'report to the parent process, and end with it', isHidden: true, inRun: false },
];

/** Those of `everyframe run`, with what it says of them. */
export const RUN_SETTINGS: readonly CollectorSetting[] = COLLECTOR_SETTINGS.flatMap((setting) =>
  setting.inRun === false ? [] : [{ ...setting, help: setting.inRun ?? setting.help }],
);

const size = (flag: string, least: string) =>
  v.pipe(
    v.string(),
    v.check(
      (text) => parseBytes(text) >= parseBytes(least),
      ({ input }) => `--${flag} is "${input}": give a size of ${least} or more, such as 512MiB or 2GiB`,
    ),
    v.transform(parseBytes),
  );

/** Where a person follows it, so nothing that runs as a script. */
const traceUrl = v.pipe(
  v.string(),
  v.check(
    (text) =>
      text.includes(TRACE_ID_PLACE) && /^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : ''),
    ({ input }) =>
      `--trace-url is "${input}": give an http:// or https:// URL with ${TRACE_ID_PLACE} in it, such as http://HOST:16686/trace/${TRACE_ID_PLACE}`,
  ),
);

const optionalText = v.optional(v.string());
const onOff = v.optional(v.boolean(), false);

/** What the settings are once they are read, by name. */
export const collectorSchema = v.strictObject({
  grpcListen: v.string(),
  httpListen: v.string(),
  pageListen: v.string(),
  maxMemory: size('max-memory', '16MiB'),
  data: optionalText,
  clickhouse: optionalText,
  maxDisk: size('max-disk', '16MiB'),
  maxAge: v.optional(age),
  tlsCert: optionalText,
  tlsKey: optionalText,
  tokenFile: optionalText,
  tenant: v.optional(v.array(tenantToken), []),
  tenantMaxAge: v.optional(v.array(tenantAge), []),
  allowAnyone: onOff,
  maxSenderRate: size('max-sender-rate', '1K'),
  forwardTo: optionalText,
  forwardTlsCa: optionalText,
  forwardHeadersFile: optionalText,
  maxForwardQueue: size('max-forward-queue', '16MiB'),
  source: v.optional(v.array(v.string()), []),
  traceUrl: v.optional(traceUrl),
  metricsAddress: optionalText,
  telemetry: telemetryKind,
  user: optionalText,
  plainLoopback: onOff,
  child: onOff,
});

/** Sizes are in bytes, lengths of time in milliseconds. */
export type CollectorSettings = v.InferOutput<typeof collectorSchema>;

const NOT_FOR_PEOPLE: ReadonlySet<string> = new Set(
  COLLECTOR_SETTINGS.flatMap(({ flag, isHidden }) => (isHidden ? [settingName(flag)] : [])),
);
export const COLLECTOR_PREFIX = 'EVERYFRAME_COLLECTOR_';

/** Flags win over the environment, that over the file, and all over the defaults. Throws {@link BadSetting}. */
export function parseCollectorSettings(
  flags: Record<string, unknown>,
  places: { env?: Environment; file?: SettingLayer } = {},
): CollectorSettings {
  const { values, origins } = layerCollectorSettings(flags, places);
  const result = v.safeParse(collectorSchema, values);
  if (!result.success) {
    const lines = result.issues.map(({ path, message }) =>
      withOrigin(origins[String(path?.[0]?.key)], message),
    );
    throw new BadSetting(lines.join('\n'));
  }
  const { data, clickhouse } = result.output;
  if (data !== undefined && clickhouse !== undefined)
    throw new BadSetting('--data and --clickhouse (or EVERYFRAME_CLICKHOUSE): give one of them');
  checkTenants(result.output);
  return result.output;
}

/** EVERYFRAME_COLLECTOR_…, and variables that settings have of their own. */
export function layerCollectorSettings(
  flags: Record<string, unknown>,
  { env = {}, file }: { env?: Environment; file?: SettingLayer } = {},
): LayeredSettings {
  const own = COLLECTOR_SETTINGS.flatMap((setting) => (setting.env === undefined ? [] : [setting]));
  const named = {
    values: Object.fromEntries(own.map(({ flag, env: name }) => [settingName(flag), env[name!]])),
    origin: (name: string) => own.find(({ flag }) => settingName(flag) === name)!.env!,
  };
  const outside = [
    ...(file ? [file] : []),
    environmentLayer(COLLECTOR_SETTINGS, env, [COLLECTOR_PREFIX]),
    named,
  ];
  return mergeLayers([
    { values: defaultsOf(COLLECTOR_SETTINGS), origin: () => 'default' },
    ...outside.map((layer) => withoutSettings(layer, NOT_FOR_PEOPLE)),
    { values: flags, origin: flagOf },
  ]);
}

const { maxSenderRate } = parseCollectorSettings({});

/** What holds where nothing else is asked for. */
export const COLLECTOR_DEFAULTS = {
  maxSenderRate,
  maxAgeMs: { inMemory: parseAge(AGES.inMemory), kept: parseAge(AGES.kept) },
  /** Of requests that arrive or are being stored, over all senders: four of the largest. */
  maxBytesInFlight: 128 * 1024 * 1024,
};
