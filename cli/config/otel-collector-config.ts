/**
 * The file of an OpenTelemetry Collector that has the eBPF profiler as its receiver: what it says of the receiver and of
 * the OTLP exporter are settings of the agent. What else it has is the Collector's.
 */
import { AGENT_SETTINGS } from '../../agent/settings/options.ts';
import { type ConfigEntry, type ConfigValue, isMapValue } from './yaml-file.ts';

/** Keys that are named otherwise there. */
const RECEIVER_KEYS: Record<string, string> = { 'verbose-mode': 'verbose' };
/** By the path below the exporter. */
const EXPORTER_KEYS: Record<string, string> = {
  endpoint: 'collection-agent',
  compression: 'compression',
  timeout: 'export-timeout',
  headers: 'header',
  'tls.insecure': 'disable-tls',
  'tls.ca-file': 'tls-ca',
  'tls.cert-file': 'tls-cert',
  'tls.key-file': 'tls-key',
};
const EXPORTERS: Record<string, string> = {
  otlp: 'grpc',
  'otlp-grpc': 'grpc',
  otlphttp: 'http/protobuf',
  'otlp-http': 'http/protobuf',
};

export const isOtelCollectorConfig = (entries: readonly ConfigEntry[]): boolean =>
  entries.some(({ key }) => key === 'receivers') && entries.some(({ key }) => key === 'service');

/** Entries as the section `agent` has them, and what was left out: names a person knows. */
export function settingsOfOtelCollector(entries: readonly ConfigEntry[]): {
  entries: ConfigEntry[];
  ignored: string[];
} {
  const found: ConfigEntry[] = [];
  const ignored: string[] = [];
  const take = (entry: ConfigEntry, where: string, key: string | undefined): void => {
    if (key !== undefined && AGENT_SETTINGS.some(({ flag }) => flag === key)) found.push({ ...entry, key });
    else ignored.push(`${where}.${entry.key} (line ${entry.line})`);
  };
  const receiver = child(entries, 'receivers', (type) => type === 'profiling');
  for (const entry of receiver ? mapOf(receiver.value) : [])
    take(entry, 'receivers.profiling', RECEIVER_KEYS[entry.key] ?? entry.key);
  const exporter = child(entries, 'exporters', (type) => Object.hasOwn(EXPORTERS, type));
  if (exporter) {
    const protocol = EXPORTERS[typeOf(exporter.key)]!;
    found.push({ key: 'protocol', line: exporter.line, value: protocol });
    for (const entry of flatten(mapOf(exporter.value)))
      take(entry, `exporters.${exporter.key}`, EXPORTER_KEYS[entry.key]);
  }
  for (const { key, line } of entries)
    if (!['receivers', 'exporters', 'service'].includes(key)) ignored.push(`${key} (line ${line})`);
  return { entries: found, ignored };
}

/** `otlp` of `otlp/backend`. */
const typeOf = (key: string): string => key.split('/')[0]!;

const mapOf = (value: ConfigValue): ConfigEntry[] => (isMapValue(value) ? value : []);

/** The first component of a kind. */
const child = (
  entries: readonly ConfigEntry[],
  kind: string,
  isWanted: (type: string) => boolean,
): ConfigEntry | undefined =>
  mapOf(entries.find(({ key }) => key === kind)?.value ?? null).find(({ key }) => isWanted(typeOf(key)));

/** `tls: {insecure: true}` as `tls.insecure`. */
const flatten = (entries: readonly ConfigEntry[]): ConfigEntry[] =>
  entries.flatMap((entry) =>
    entry.key === 'tls'
      ? mapOf(entry.value).map((inner) => ({ ...inner, key: `tls.${inner.key}` }))
      : [entry],
  );
