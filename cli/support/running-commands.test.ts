import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { describeCommands, flagOf, runningCommands } from './running-commands.ts';

let proc: string;
beforeEach(() => {
  proc = mkdtempSync(join(tmpdir(), 'everyframe-commands-'));
});
afterEach(() => rmSync(proc, { recursive: true }));

function runs(pid: string, root: string, ...words: string[]): void {
  mkdirSync(join(proc, pid));
  symlinkSync(root, join(proc, pid, 'root'));
  writeFileSync(join(proc, pid, 'cmdline'), words.map((word) => `${word}\0`).join(''));
}

it('finds the services of this root, and says with which flags they run', () => {
  runs(
    '7',
    '/',
    '/lib/node',
    '--x',
    '/usr/lib/e/build/cli/sampling.cjs',
    'agent',
    '--config=/c.yaml',
    '--verbose',
  );
  runs(
    '8',
    '/',
    'node',
    '/usr/lib/e/dist/cli/main.js',
    'collector',
    '--config',
    '/d.yaml',
    '--metrics-address',
    ':1',
  );
  runs('9', proc, 'node', '/usr/lib/e/dist/cli/main.js', 'collector');
  runs('10', '/', 'node', '/usr/lib/e/dist/cli/main.js', 'doctor');
  runs('11', '/', 'vi', 'cli/notes.js', 'agent');
  const found = runningCommands(proc);
  expect(describeCommands(found)).toBe(
    '7 agent --config=/c.yaml --verbose\n8 collector --config /d.yaml --metrics-address :1\n',
  );
  expect(flagOf(found, 'config')).toBe('/c.yaml');
  expect(flagOf(found, 'metrics-address')).toBe(':1');
  expect(flagOf(found, 'metrics')).toBeUndefined();
});

it('shows no secret, and says where nothing runs', () => {
  expect(describeCommands(runningCommands(proc))).toBe('no agent or collector runs here\n');
  runs(
    '7',
    '/',
    'node',
    'dist/cli/main.js',
    'agent',
    '--header',
    'x=hush-hush',
    '--header=y=hush-hush',
    '--symbols=full',
  );
  expect(describeCommands(runningCommands(proc))).toBe(
    '7 agent --header (secret) --header=(secret) --symbols=full\n',
  );
});
