import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BadSetting } from '../common/base/bad-setting.ts';
import { parseReceiver } from './receiver-address.ts';

it.each([
  ['collector.example:4317', 'collector.example:4317', undefined, undefined],
  ['[::1]:4317', '[::1]:4317', undefined, undefined],
  ['http://[2001:db8::1]:4317', '[2001:db8::1]:4317', 'http', undefined],
  ['HTTPS://host', 'host:443', 'https', undefined],
  ['http://host/v1/a', 'host:80', 'http', '/v1/a'],
  ['dns:///name:1', 'dns:///name:1', undefined, undefined],
  ['dns:name:1', 'dns:name:1', undefined, undefined],
  ['ipv4:10.0.0.1:1,10.0.0.2:2', 'ipv4:10.0.0.1:1,10.0.0.2:2', undefined, undefined],
  ['unix:/run/x.sock', 'unix:/run/x.sock', undefined, undefined],
  ['unix:///run/x.sock', 'unix:/run/x.sock', undefined, undefined],
])('reads %s', (text, target, scheme, path) => {
  expect(parseReceiver(text, '--x')).toMatchObject({ target, scheme, path });
});

it.each([
  'host',
  'host:0',
  'host:65536',
  '::1:1',
  '[::g]:1',
  'a b:1',
  'u:p@h:1',
  'http://u@h:1',
  'ftp://h:1',
  'http://h:1?q',
  'unix:',
  'ipv4:x',
  'dns://9.9.9.9/name:1',
  '',
])('refuses %j with a sentence', (text) => {
  expect(() => parseReceiver(text, '--x')).toThrow(BadSetting);
  expect(() => parseReceiver(text, '--x')).toThrow(/^--x is ".*": give host:port/);
});

it('whatever is written, it is an address or a BadSetting', () => {
  const piece = fc.constantFrom(
    'unix:',
    'dns:///',
    'http://',
    'ipv4:',
    '[::1]',
    ':',
    '1',
    '65536',
    '/',
    'a',
    '@',
    ' ',
    '%',
  );
  const texts = fc.oneof(
    fc.string(),
    fc.array(piece, { maxLength: 8 }).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      try {
        const { target, authority } = parseReceiver(text, '--x');
        expect(target).toMatch(/^unix:./.test(target) ? /./ : /^[^\s@]+$/);
        if (authority !== undefined && authority !== 'localhost') expect(authority).toMatch(/:\d+$/);
      } catch (error) {
        if (!(error instanceof BadSetting)) throw error;
      }
    }),
  );
});
