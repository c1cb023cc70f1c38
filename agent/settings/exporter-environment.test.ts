import { expect, it } from 'vitest';
import { exporterEnvironment } from './exporter-environment.ts';
import { parseAgentOptions } from './options.ts';

const read = (env: Record<string, string>) => exporterEnvironment(env);

it('has the variables of the signal before those of all signals, and empty ones as none', () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://all:4317',
    OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT: 'http://profiles:4317',
    OTEL_EXPORTER_OTLP_CERTIFICATE: '/ca',
    OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE: ' ',
    OTEL_EXPORTER_OTLP_CLIENT_KEY: '/key',
    OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: '/cert',
  };
  const { values, variables, notes } = read(env);
  expect(values).toEqual({
    collectionAgent: 'http://profiles:4317',
    tlsCa: '/ca',
    tlsKey: '/key',
    tlsCert: '/cert',
  });
  expect(variables['collectionAgent']).toBe('OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT');
  expect(notes).toEqual([]);
});

it('reads headers as W3C baggage', () => {
  const OTEL_EXPORTER_OTLP_HEADERS = 'Authorization=Bearer%20a%3Db, x-scope = team%2Ca ,api-key=100%';
  expect(read({ OTEL_EXPORTER_OTLP_HEADERS }).values['header']).toEqual([
    'authorization=Bearer a=b',
    'x-scope=team,a',
    'api-key=100%',
  ]);
  const bad = (): unknown => read({ OTEL_EXPORTER_OTLP_HEADERS: 'a=1,s3cret' });
  expect(bad).toThrow(/^OTEL_EXPORTER_OTLP_HEADERS, pair 2, is not NAME=VALUE/);
  expect(bad).not.toThrow(/s3cret/);
});

it('reads words and milliseconds, and passes over what it can not use, which it shows', () => {
  const good = { COMPRESSION: 'GZIP', TIMEOUT: '2500', INSECURE: 'True', PROTOCOL: 'http/protobuf' };
  const bad = { COMPRESSION: 'zstd', TIMEOUT: '5s', INSECURE: '1', PROTOCOL: 'http/json' };
  const named = (all: object): Record<string, string> =>
    Object.fromEntries(Object.entries(all).map(([name, value]) => [`OTEL_EXPORTER_OTLP_${name}`, value]));
  expect(read(named(good)).values).toEqual({
    compression: 'gzip',
    exportTimeout: '2500ms',
    disableTls: true,
    protocol: 'http/protobuf',
  });
  const { values, notes } = read(named(bad));
  expect(values).toEqual({});
  expect(notes).toHaveLength(4);
  expect(notes.join()).toContain('OTEL_EXPORTER_OTLP_PROTOCOL is "http/json"');
});

it('is weaker than flags and the variables of the agent, and says where values come from', () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:1',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_PROFILING_AGENT_COLLECTION_AGENT: 'b:2',
  };
  const options = parseAgentOptions({ compression: 'none' }, { env });
  expect(options).toMatchObject({ collectionAgent: ['b:2'], exportTimeout: 1000, compression: 'none' });
  expect(options.origins).toMatchObject({
    collectionAgent: 'OTEL_PROFILING_AGENT_COLLECTION_AGENT',
    exportTimeout: 'OTEL_EXPORTER_OTLP_TIMEOUT',
    compression: '--compression',
    protocol: 'default',
  });
});
