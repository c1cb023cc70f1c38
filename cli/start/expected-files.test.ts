import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { filesOfCommand } from './expected-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'expected-files-'));
afterAll(() => rmSync(folder, { recursive: true }));

const script = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
};

describe('filesOfCommand', () => {
  it('finds a program in PATH, and the libraries that its dynamic linker will load', () => {
    const [program, ...libraries] = filesOfCommand(['sh', '-c', 'exit'], { PATH: '/nowhere:/bin' });
    expect(program).toBe('/bin/sh');
    expect(libraries.some((path) => /libc[.-]/.test(path))).toBe(true);
    expect(libraries.some((path) => /ld-/.test(path))).toBe(true);
  });

  it.each(['#!/bin/sh\n', '#! /usr/bin/env sh\n', '#!/bin/sh -e\nexit'])(
    'goes through the first line of a script: %j',
    (text) => {
      expect(filesOfCommand([script('script', text)], { PATH: '/bin' })[0]).toBe('/bin/sh');
    },
  );

  it.each([
    ['#!/bin/sh\nset -e\nexec cat "$@"\n'],
    ['#!/usr/bin/env sh\nif true; then\n\tLANG=C A=1 cat </dev/null\nfi\n'],
    ['#!/bin/sh\nexec 3<&-\nexec "$unknown"\nexec /bin/cat\n'],
  ])('goes on to what a script runs: %j', (text) => {
    const path = script('runs', text);
    for (const command of [[path], ['sh', path], ['sh', '-c', `cd /; \n exec ${path}`]]) {
      const files = filesOfCommand(command, { PATH: '/bin' });
      expect(files[0]).toBe('/bin/sh');
      expect(files).toContain('/bin/cat');
    }
  });

  it('ends where a script runs itself', () => {
    const path = join(folder, 'itself');
    expect(filesOfCommand([script('itself', `#!/bin/sh\n${path}\n`)], { PATH: '/bin' })[0]).toBe('/bin/sh');
  });

  it('ends where scripts lead to each other', () => {
    const path = join(folder, 'loop');
    expect(filesOfCommand([script('loop', `#!${path}\n`)], {})).toEqual([]);
  });

  it('expects nothing of what is not there, no program, or damaged', () => {
    expect(filesOfCommand(['no-such-command'], { PATH: '/bin' })).toEqual([]);
    expect(filesOfCommand([''], { PATH: '/bin' })).toEqual([]);
    expect(filesOfCommand([folder], {})).toEqual([]);
    const damaged = script('damaged', '\x7fELF');
    expect(filesOfCommand([damaged], {})).toEqual([damaged]);
  });
});
