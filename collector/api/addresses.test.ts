import { describe, expect, it } from 'vitest';
import { isTrustedHost } from '../net/host-check.ts';
import { formatAddress, isLoopback, parseListenAddress } from '../net/listen.ts';

describe('parseListenAddress', () => {
  it.each([
    ['127.0.0.1:11000', { host: '127.0.0.1', port: 11000 }],
    ['[::1]:0', { host: '::1', port: 0 }],
    ['localhost:80', { host: 'localhost', port: 80 }],
    [':4318', { host: '0.0.0.0', port: 4318 }],
  ])('reads %s', (text, address) => {
    expect(parseListenAddress(text)).toEqual(address);
  });

  it.each(['127.0.0.1', '::1:80', 'host:70000', 'host:', '[::1]', ''])(
    'refuses "%s" with what to write',
    (text) => {
      expect(() => parseListenAddress(text)).toThrow(
        `"${text}" is not an address to listen on: write host:port`,
      );
    },
  );

  it('writes IPv6 addresses in brackets', () => {
    expect(formatAddress({ host: '::1', port: 1 })).toBe('[::1]:1');
  });

  it('tells loopback from the rest', () => {
    expect(['127.0.0.1', '127.8.0.1', '::1', 'localhost'].every(isLoopback)).toBe(true);
    expect(['0.0.0.0', '::', '10.0.0.1', 'example.org'].some(isLoopback)).toBe(false);
  });
});

describe('isTrustedHost', () => {
  it.each([
    'localhost:11080',
    'LOCALHOST',
    '127.0.0.1:1',
    '[::1]:11080',
    '10.1.2.3:11080',
    'profiles.lan:11080',
  ])('takes %s', (header) => {
    expect(isTrustedHost(header, 'profiles.lan')).toBe(true);
  });

  it.each([
    undefined,
    '',
    'attacker.example',
    'attacker.example:11080',
    'localhost.attacker.example',
    '[::1',
    'a b',
  ])('refuses %s', (header) => {
    expect(isTrustedHost(header, '127.0.0.1')).toBe(false);
  });
});
