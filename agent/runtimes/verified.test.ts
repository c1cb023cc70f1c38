import { expect, it } from 'vitest';
import { isVerified, tellUnsupported, tellUnverified } from './verified.ts';

it.each([
  ['cpython', '3.13.5', true],
  ['cpython', '3.13', true],
  ['cpython', '3.1.5', false],
  ['cpython', '3.13.5t', false],
  ['cpython', '3.14.2t', true],
  ['cpython', '3.16.0', false],
  ['v8', '13.6.233.10-node.28', false],
  ['other', '3.13.5', false],
])('%s %s is verified: %s', (runtime, version, expected) => {
  expect(isVerified({ runtime, version }, { cpython: ['3.13', '3.14t'], v8: [] })).toBe(expected);
});

it('reports a version once, whatever the number of its files', () => {
  const told: string[] = [];
  const tell = tellUnverified((message) => told.push(message));
  const python = { runtime: 'cpython', version: '3.99.1', facts: undefined, entry: new Uint8Array() };
  tell(python, '/usr/bin/python3.99');
  tell(python, '/opt/python3.99');
  expect(told).toEqual([
    expect.stringMatching(/^cpython 3\.99\.1 \(\/usr\/bin\/python3\.99\) is unverified/),
  ]);
});

it('reports a file whose runtime is not supported once, with the reason, and of a bounded number of files', () => {
  const told: string[] = [];
  const tell = tellUnsupported((message) => told.push(message));
  tell('V8 13.1.201: built with compressed pointers', '/opt/embedder');
  tell('V8 13.1.201: built with compressed pointers', '/opt/embedder');
  expect(told).toEqual([
    expect.stringMatching(/^\/opt\/embedder: V8 13\.1\.201: built with compressed pointers; /),
  ]);
  for (let i = 0; i < 1000; i++) tell('CPython of unknown version', `/tmp/${i}`);
  expect(told).toHaveLength(64);
});
