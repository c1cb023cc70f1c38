/**
 * OTEL_EXPORTER_OTLP_… as settings of the agent (opentelemetry-specification, protocol/exporter.md): the variable of the
 * signal, OTEL_EXPORTER_OTLP_PROFILES_…, before the one of all signals; an empty one is none.
 */
import { parseHeader } from '../../otlp-client/endpoint.ts';

export interface ExporterEnvironment {
  /** By the setting's name. */
  values: Record<string, unknown>;
  /** Which variable that is from. */
  variables: Record<string, string>;
  /** What was set and can't be used, which the specification has told and passed over. */
  notes: string[];
}

type Environment = Record<string, string | undefined>;
/** The setting's value; undefined: it says nothing. Throws a sentence about what can't be used, after the variable's name. */
type Read = (text: string, variable: string) => unknown;

const asIs: Read = (text) => text.trim();

/** Of a list that the specification ends; case does not count. */
const oneOf =
  (...words: string[]): Read =>
  (text) => {
    const word = text.trim().toLowerCase();
    if (!words.includes(word)) throw new Error(`is "${text}", which is none of ${words.join(', ')}`);
    return word;
  };

const isTrue: Read = (text) => {
  const word = text.trim().toLowerCase();
  if (word !== 'true' && word !== 'false') throw new Error(`is "${text}", which is not true or false`);
  return word === 'true' ? true : undefined;
};

/** Milliseconds; 0 is a limit that nothing would meet. */
const timeout: Read = (text) => {
  if (!/^[1-9]\d{0,8}$/.test(text.trim()))
    throw new Error(`is "${text}", which is not a number of milliseconds`);
  return `${text.trim()}ms`;
};

/** W3C baggage: `name=value,name=value`, values percent-encoded. */
const headers: Read = (text, variable) => {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '');
  return pairs.map((pair, i) => {
    const [name, value] = parseHeader(decodePercent(pair.split(';')[0]!), `${variable}, pair ${i + 1},`);
    return `${name}=${value}`;
  });
};

/** One that is not a valid encoding stays as it is: a token may have a `%`. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const VARIABLES: readonly [suffix: string, setting: string, read: Read][] = [
  ['ENDPOINT', 'collectionAgent', asIs],
  ['PROTOCOL', 'protocol', oneOf('grpc', 'http/protobuf')],
  ['INSECURE', 'disableTls', isTrue],
  ['CERTIFICATE', 'tlsCa', asIs],
  ['CLIENT_CERTIFICATE', 'tlsCert', asIs],
  ['CLIENT_KEY', 'tlsKey', asIs],
  ['HEADERS', 'header', headers],
  ['COMPRESSION', 'compression', oneOf('gzip', 'none')],
  ['TIMEOUT', 'exportTimeout', timeout],
];

const PREFIX = 'OTEL_EXPORTER_OTLP_';
/** Whose path is what all signals have before their own. */
export const BASE_ENDPOINT = `${PREFIX}ENDPOINT`;
/** Of one signal: its path is the whole one. */
export const isSignalEndpoint = (variable: string): boolean =>
  /^OTEL_EXPORTER_OTLP_[A-Z]+_ENDPOINT$/.test(variable);

/** @throws BadSetting for headers: what they would prove is missing without them */
export function exporterEnvironment(env: Environment, signal = 'PROFILES'): ExporterEnvironment {
  const found: ExporterEnvironment = { values: {}, variables: {}, notes: [] };
  for (const [suffix, setting, read] of VARIABLES) {
    const variable = [`${PREFIX}${signal}_${suffix}`, PREFIX + suffix].find((name) => env[name]?.trim());
    if (variable === undefined) continue;
    const value = readOrNote(read, env[variable]!, variable, found.notes);
    if (value === undefined) continue;
    found.values[setting] = value;
    found.variables[setting] = variable;
  }
  return found;
}

function readOrNote(read: Read, text: string, variable: string, notes: string[]): unknown {
  if (read === headers) return read(text, variable);
  try {
    return read(text, variable);
  } catch (error) {
    notes.push(`${variable} ${(error as Error).message}: it has no effect`);
    return undefined;
  }
}
