import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Collector, startCollector } from '../../collector/main.ts';
import { ask, collectorUrl, explainUnanswered } from './query-client.ts';

const failed = (code: string): Error => Object.assign(new Error('why'), { code });
const told = (url: string, error: Error): string => explainUnanswered(new URL(url), error).message;

describe('what is told of a collector that does not answer', () => {
  it('names a certificate that is not trusted, and what to do', () => {
    const message = told('https://server:11080', failed('DEPTH_ZERO_SELF_SIGNED_CERT'));
    expect(message).toMatch(/certificate of https:\/\/server:11080 is not trusted/);
    expect(message).toMatch(/--tls-ca FILE/);
    expect(message).not.toMatch(/start one/);
    const ofOthers = told('https://server:11080', failed('ERR_TLS_CERT_ALTNAME_INVALID'));
    expect(ofOthers).toMatch(/for other names .*give --url a name that it has/);
  });

  it('names the other scheme', () => {
    expect(told('http://server:11080', failed('ECONNRESET'))).toMatch(/https:\/\/server:11080/);
    expect(told('https://server:11080', failed('ERR_SSL_WRONG_VERSION_NUMBER'))).toMatch(
      /http:\/\/server:11080/,
    );
    expect(told('http://server:11080', failed('ECONNREFUSED'))).toMatch(/no collector answers/);
  });

  it('says why for a name with several addresses', () => {
    const error = new AggregateError([failed('ECONNREFUSED'), failed('ECONNREFUSED')], '');
    expect(told('http://localhost:11080', error)).toMatch(/at http:\/\/localhost:11080 \(why\): start one/);
  });
});

describe('an address', () => {
  it('without a scheme is https where an authority is given', () => {
    expect(collectorUrl({ url: 'server:11080' }).href).toBe('http://server:11080/');
    expect(collectorUrl({ url: 'server:11080', tlsCa: '/ca' }).href).toBe('https://server:11080/');
  });

  it('of another scheme has no use for an authority', () => {
    expect(() => collectorUrl({ url: 'http://server:1', tlsCa: '/ca' })).toThrow(
      '--tls-ca has no use for --url http://server:1: write https://server:1, or leave --tls-ca out',
    );
  });
});

describe('a collector with a token', () => {
  let server: Server | undefined;
  afterEach(() => server?.close());

  it('says how a command is given it', async () => {
    server = createServer((_, response) => response.writeHead(401).end('{"error":"a token is needed"}'));
    await new Promise<void>((done) => server!.listen(0, '127.0.0.1', done));
    const url = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(ask({ url }, 'status', {})).rejects.toThrow(/wants a token: give --token-file FILE/);
    await expect(ask({ url, tokenFile: '/etc/hostname' }, 'status', {})).rejects.toThrow(
      /another token than \/etc\/hostname, which --token-file names/,
    );
  });
});

describe('a collector with TLS and a token', () => {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-query-tls-'));
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  const token = file('token', 'f00dfacef00dface\n');
  let collector: Collector;
  let url: string;

  beforeAll(async () => {
    const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    const name = ['-subj', '/CN=example', '-addext', 'subjectAltName=IP:127.0.0.1'];
    execFileSync('openssl', ['req', '-x509', ...made, ...name, '-keyout', key, '-out', cert], {
      stdio: 'ignore',
    });
    collector = await startCollector({
      ...{ grpcListen: '127.0.0.1:0', httpListen: '127.0.0.1:0', pageListen: '127.0.0.1:0' },
      ...{ maxMemoryBytes: 2 ** 26, access: { tlsCert: cert, tlsKey: key, tokenFile: token } },
      logger: { info: () => {}, warn: () => {}, error: () => {} },
    });
    url = new URL(collector.urls.page).host;
  });
  afterAll(async () => {
    await collector.stop();
    rmSync(directory, { recursive: true });
  });

  // knip takes a path in one piece for an import
  const everyframe = (...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      execFile(['bin', 'everyframe'].join('/'), args, (error, stdout, stderr) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
      });
    });

  it('is asked by flags, and takes what is imported', async () => {
    const flags = ['--url', url, '--tls-ca', cert, '--token-file', token];
    const folded = file('a.folded', 'main;work 7\n');
    const imported = await everyframe('collector', 'import', ...flags, '--at', 'now', folded);
    expect(imported).toMatchObject({ code: 0, stdout: expect.stringMatching(/a\.folded: 7 samples/) });
    const top = await everyframe('query', 'top', ...flags);
    expect(top).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/ work$/m) });
    const waits = await everyframe('query', 'waits', ...flags);
    expect(waits).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^no waits.*--off-cpu/),
    });
    const exported = await everyframe('query', 'export', ...flags, '--format', 'folded', '-o', '-');
    expect(exported).toMatchObject({ code: 0, stdout: expect.stringMatching(/main;work 7/) });
  });

  it('says that a file that it exports has no samples, and writes it all the same', async () => {
    const flags = ['--url', url, '--tls-ca', cert, '--token-file', token];
    const output = ['--format', 'folded', '-o', '-'];
    const none = await everyframe('query', 'export', ...flags, ...output, '--where', 'process=nosuch');
    expect(none).toMatchObject({
      ...{ code: 0, stdout: '' },
      stderr: expect.stringMatching(/^everyframe: 0 of \d+ samples.*: nothing matches the filter/),
    });
    const some = await everyframe('query', 'export', ...flags, ...output);
    expect(some).toMatchObject({ code: 0, stderr: '' });
  });

  it('tells what is wrong with what it was given', async () => {
    await expect(ask({ url }, 'status', {})).rejects.toThrow(/where it speaks TLS, write https:\/\//);
    await expect(ask({ url: `https://${url}` }, 'status', {})).rejects.toThrow(
      /is not trusted.*give --tls-ca FILE/,
    );
    await expect(ask({ url, tlsCa: cert }, 'status', {})).rejects.toThrow(/give --token-file FILE/);
    await expect(ask({ url, tlsCa: token, tokenFile: token }, 'status', {})).rejects.toThrow(
      /token, which --tls-ca names, is not a PEM certificate/,
    );
    await expect(ask({ url, tlsCa: cert, tokenFile: '/nowhere' }, 'status', {})).rejects.toThrow(
      /can't read \/nowhere, which --token-file names/,
    );
  });
});
