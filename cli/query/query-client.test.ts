import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { ask, explainUnanswered } from './query-client.ts';

let server: Server | undefined;
afterEach(() => server?.close());

const failed = (code: string): Error =>
  new Error('fetch failed', { cause: Object.assign(new Error('why'), { code }) });
const told = (url: string, code: string): string => explainUnanswered(new URL(url), failed(code)).message;

describe('what is told of a collector that does not answer', () => {
  it('names a certificate that is not trusted, and what to do', () => {
    const message = told('https://server:11080', 'DEPTH_ZERO_SELF_SIGNED_CERT');
    expect(message).toMatch(/certificate of https:\/\/server:11080 is not trusted/);
    expect(message).toMatch(/NODE_EXTRA_CA_CERTS=FILE/);
    expect(message).not.toMatch(/start one/);
    expect(told('https://server:11080', 'ERR_TLS_CERT_ALTNAME_INVALID')).toMatch(/certificate/);
  });

  it('names the other scheme', () => {
    expect(told('http://server:11080', 'UND_ERR_SOCKET')).toMatch(/https:\/\/server:11080/);
    expect(told('http://server:11080', 'ECONNRESET')).toMatch(/https:\/\/server:11080/);
    expect(told('https://server:11080', 'ERR_SSL_WRONG_VERSION_NUMBER')).toMatch(/http:\/\/server:11080/);
    expect(told('http://server:11080', 'ECONNREFUSED')).toMatch(/no collector answers/);
  });

  it('says how a command is given the token', async () => {
    server = createServer((_, response) => response.writeHead(401).end('{"error":"a token is needed"}'));
    await new Promise<void>((done) => server!.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    await expect(ask(`127.0.0.1:${port}`, 'status', {})).rejects.toThrow(/EVERYFRAME_TOKEN_FILE=FILE/);
  });
});
