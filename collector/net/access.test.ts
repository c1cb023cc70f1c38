import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Access, type Tls } from './access.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-access-'));
const pairs: Record<string, Tls> = {};
beforeAll(() => {
  for (const name of ['first', 'second']) {
    const [key, cert] = ['key', 'pem'].map((end) => join(directory, `${name}.${end}`)) as [string, string];
    const kind = [
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-subj',
      `/CN=${name}`,
    ];
    execFileSync('openssl', ['req', '-x509', ...kind, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    pairs[name] = { cert: readFileSync(cert), key: readFileSync(key) };
  }
});
afterAll(() => rmSync(directory, { recursive: true }));

const nameServedAt = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    }).on('error', reject);
  });

it('serves the next certificate and takes the next token, also where there is no TLS', async () => {
  const access = new Access(pairs['first'], 'first-token');
  const plain = access.withoutTls();
  const server = access.createServer({}, (_, response) => response.end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  expect(await nameServedAt(port)).toBe('first');
  expect(access.renew(new Access(pairs['second'], 'second-token'))).toBe(true);
  expect(await nameServedAt(port)).toBe('second');
  for (const each of [access, plain]) {
    expect(each.allows('Bearer first-token')).toBe(false);
    expect(each.allows('Bearer second-token')).toBe(true);
  }
  server.close();
});

it('takes nothing where a token or TLS comes or goes', () => {
  const access = new Access(undefined, 'a-token');
  expect(access.renew(new Access(undefined, undefined))).toBe(false);
  expect(access.renew(new Access(pairs['first'], 'other'))).toBe(false);
  expect(access.allows('Bearer a-token')).toBe(true);
});
