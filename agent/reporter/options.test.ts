import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { parseAgentOptions } from '../settings/options.ts';
import { destinationOptions } from './options.ts';

let dir = '';
const file = (name: string): string => join(dir, name);

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'everyframe-options-'));
  for (const name of ['a', 'b']) {
    const curve = [
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-subj',
      `/CN=${name}`,
    ];
    const out = ['-keyout', file(`${name}.key`), '-out', file(`${name}.pem`)];
    execFileSync('openssl', ['req', '-x509', ...curve, ...out], { stdio: 'ignore' });
  }
  writeFileSync(file('headers'), '# tokens\n\nAuthorization=Bearer s3cret==\n  x-scope = team a \n');
  writeFileSync(file('bad-headers'), 'a=1\nno equals sign, s3cret\n');
});
afterAll(() => rmSync(dir, { recursive: true }));

const make = (flags: Record<string, unknown>, env = {}) =>
  destinationOptions(parseAgentOptions({ collectionAgent: 'c:4317', ...flags }), env)[0];

function messageOf(flags: Record<string, unknown>): string {
  try {
    make(flags);
  } catch (error) {
    expect(error).toBeInstanceOf(BadSetting);
    return (error as Error).message;
  }
  throw new Error('accepted');
}

describe('reporterOptions', () => {
  it.each([
    ['collector.example:4317', 'collector.example:4317', true, 0],
    ['127.0.0.1:11000', '127.0.0.1:11000', true, 0],
    ['[::1]:11000', '[::1]:11000', true, 0],
    ['http://host:4317', 'host:4317', false, 0],
    ['HTTPS://host:4317/', 'host:4317', true, 0],
    ['https://host', 'host:443', true, 0],
    ['dns:///host:4317', 'dns:///host:4317', true, 0],
    ['unix:///run/otlp.sock', 'unix:/run/otlp.sock', false, 0],
  ])('reads %s', (collectionAgent, address, tls, notes) => {
    const made = make({ collectionAgent });
    expect(made.address).toBe(address);
    expect(made.tls !== undefined).toBe(tls);
    expect(made.notes).toHaveLength(notes);
  });

  it.each([
    'host',
    'host:',
    'host:0',
    'host:65536',
    '::1:4317',
    '[::g]:1',
    'a b:1',
    'http://h:1/path',
    'u@h:1',
    '',
  ])('refuses %j as an address', (collectionAgent) => {
    expect(messageOf({ collectionAgent })).toMatch(/--collection-agent/);
  });

  it('has no TLS with --disable-tls, and says what contradicts that', () => {
    expect(make({ disableTls: true }).tls).toBeUndefined();
    expect(messageOf({ disableTls: true, collectionAgent: 'https://h:1' })).toContain('--disable-tls');
    expect(make({ disableTls: true, tlsCa: file('a.pem') }).notes[0]).toContain('no effect');
  });

  it('reads certificates, and the system authorities otherwise', () => {
    const made = make({ tlsCa: file('b.pem'), tlsCert: file('a.pem'), tlsKey: file('a.key') });
    expect(made.tls).toEqual({
      ca: readFileSync(file('b.pem')),
      cert: readFileSync(file('a.pem')),
      key: readFileSync(file('a.key')),
    });
    expect(make({}, { SSL_CERT_FILE: file('b.pem') }).tls?.ca).toEqual(readFileSync(file('b.pem')));
    expect(make({}, { SSL_CERT_FILE: file('none') }).tls).toEqual({});
  });

  it.each([
    [{ tlsCa: 'none.pem' }, /none\.pem, which --tls-ca names: there is no such file/],
    [{ tlsCa: 'headers' }, /headers, which --tls-ca names, is not a PEM certificate/],
    [{ tlsCert: 'a.pem' }, /--tls-cert needs --tls-key/],
    [{ tlsKey: 'a.key' }, /--tls-key needs --tls-cert/],
    [{ tlsCert: 'a.pem', tlsKey: 'b.key' }, /b\.key \(--tls-key\) is not the key of .*a\.pem/],
    [{ tlsCert: 'a.pem', tlsKey: 'a.pem' }, /a\.pem, which --tls-key names, is not a PEM private key/],
    [{ headersFile: 'none' }, /none, which --headers-file names/],
    [{ headersFile: 'bad-headers' }, /^line 2 of .*bad-headers \(--headers-file\) is not NAME=VALUE/],
  ])('says what is wrong with %j', (flags, message) => {
    const paths = Object.fromEntries(Object.entries(flags).map(([name, value]) => [name, file(value)]));
    expect(messageOf(paths)).toMatch(message);
    expect(messageOf(paths)).not.toContain('s3cret');
  });

  it('reads headers from the file and the flags', () => {
    const made = make({ headersFile: file('headers'), header: ['B=2', 'x-bin=AQID'] });
    expect(made.headers).toEqual([
      ['authorization', 'Bearer s3cret=='],
      ['x-scope', 'team a'],
      ['b', '2'],
      ['x-bin', 'AQID'],
    ]);
  });

  it.each(['novalue', '=s3cret', 'na me=s3cret', 'grpc-timeout=s3cret', 'a=s3cret\u00e9', 'a-bin=s3cret!'])(
    'refuses the header %j without repeating its value',
    (header) => {
      const message = messageOf({ header: ['ok=1', header] });
      expect(message).toContain('--header number 2');
      expect(message).not.toContain('s3cret');
    },
  );

  it('keeps requests well below the size of the queue', () => {
    expect(make({ maxQueueBytes: '1048576' }).maxRequestBytes).toBe(262_144);
    expect(make({}).maxRequestBytes).toBe(4 << 20);
  });

  it.each([
    ['c:4318', {}, 'https://c:4318/v1development/profiles', 'https://c:4318/v1/metrics'],
    ['c:4318', { disableTls: true }, 'http://c:4318/v1development/profiles', 'http://c:4318/v1/metrics'],
    ['http://c:4318', {}, 'http://c:4318/v1development/profiles', 'http://c:4318/v1/metrics'],
    ['https://c/in/here', {}, 'https://c/in/here', 'https://c/v1/metrics'],
  ])('%s over HTTP', (collectionAgent, flags, profiles, metrics) => {
    const { http } = make({ collectionAgent, protocol: 'http/protobuf', ...flags });
    expect([http?.profiles.href, http?.metrics.href]).toEqual([profiles, metrics]);
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://c:4318', 'http://c:4318/v1development/profiles'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://c:4318/base/', 'http://c:4318/base/v1development/profiles'],
    ['OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT', 'http://c:4318', 'http://c:4318/'],
    ['OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT', 'http://c:4318/x', 'http://c:4318/x'],
  ])('%s=%s is completed as the specification has it', (name, value, url) => {
    const env = { [name]: value, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' };
    expect(destinationOptions(parseAgentOptions({}, { env }), {})[0].http?.profiles.href).toBe(url);
  });

  it('has the scheme of an endpoint before OTEL_EXPORTER_OTLP_INSECURE, and no paths for gRPC', () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c:4317/x', OTEL_EXPORTER_OTLP_INSECURE: 'true' };
    const [made] = destinationOptions(parseAgentOptions({}, { env }), {});
    expect(made).toMatchObject({ address: 'c:4317', tls: {} });
    expect(made.notes).toHaveLength(2);
  });

  it('makes one of each destination', () => {
    const all = destinationOptions(parseAgentOptions({ collectionAgent: ['a:1', 'http://b:2'] }), {});
    expect(all.map(({ address, tls }) => [address, tls !== undefined])).toEqual([
      ['a:1', true],
      ['b:2', false],
    ]);
  });
});
