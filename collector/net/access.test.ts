import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SOLE_TENANT } from '../settings/tenants.ts';
import { Access, readAccess, type Tls } from './access.ts';

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
    expect(each.tenantOf('Bearer first-token')).toBe(undefined);
    expect(each.tenantOf('Bearer second-token')).toBe(SOLE_TENANT);
  }
  server.close();
});

it('takes nothing where a token or TLS comes or goes', () => {
  const access = new Access(undefined, 'a-token');
  expect(access.renew(new Access(undefined, undefined))).toBe(false);
  expect(access.renew(new Access(pairs['first'], 'other'))).toBe(false);
  expect(access.tenantOf('Bearer a-token')).toBe(SOLE_TENANT);
});

describe('tenants', () => {
  const tenant = ['shop', 'bank'].map((name) => ({ name, tokenFile: join(directory, `${name}.token`) }));
  const write = (name: string, token: string): void =>
    writeFileSync(join(directory, `${name}.token`), `${token}\n`);

  it('are known by their tokens, which may change while their names stay', () => {
    write('shop', 'shop-token-0123456789');
    write('bank', 'bank-token-0123456789');
    const access = readAccess({ tenant });
    expect(access.tenants).toEqual(['shop', 'bank']);
    expect(access.tenantOf('Bearer shop-token-0123456789')).toBe('shop');
    const basic = Buffer.from('anyone:bank-token-0123456789').toString('base64');
    expect(access.tenantOf(`Basic ${basic}`)).toBe('bank');
    for (const nobody of [undefined, 'Bearer shop', 'Bearer shop-token-012345678', 'shop-token-0123456789'])
      expect(access.tenantOf(nobody)).toBe(undefined);
    write('bank', 'next-token-0123456789');
    expect(access.renew(readAccess({ tenant }))).toBe(true);
    expect(access.tenantOf(`Basic ${basic}`)).toBe(undefined);
    expect(access.tenantOf('Bearer next-token-0123456789')).toBe('bank');
    expect(access.renew(readAccess({ tenant: tenant.slice(1) }))).toBe(false);
    expect(access.tenantOf('Bearer shop-token-0123456789')).toBe('shop');
  });

  it('can not have the same token', () => {
    write('shop', 'same-token-0123456789');
    write('bank', 'same-token-0123456789');
    expect(() => readAccess({ tenant })).toThrow(/--tenant bank: .*bank.token has the token of tenant shop/);
    write('bank', 'short');
    expect(() => readAccess({ tenant })).toThrow(/bank.token \(--tenant\) must hold one line of 16 or more/);
  });
});
