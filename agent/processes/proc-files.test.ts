import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { parseStat, readProcProcess, readSmallFile } from './proc-files.ts';

const fields = (start: string) => `S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 ${start} 1000 2000`;

describe('/proc/PID/stat', () => {
  test('names may hold brackets, spaces and digits', () => {
    expect(parseStat(`42 (a) b (c) 1) ${fields('1234')}\n`)).toEqual({
      comm: 'a) b (c) 1',
      parentPid: 7,
      startTicks: 1234n,
    });
  });

  test('what is not a stat line is none', () => {
    expect(parseStat('')).toBeUndefined();
    expect(parseStat('42 (x) S 7')).toBeUndefined();
    expect(parseStat(`42 (x) ${fields('-5')}`)).toBeUndefined();
    fc.assert(fc.property(fc.string(), (text) => void parseStat(text)));
  });
});

describe('a process in /proc', () => {
  const proc = mkdtempSync(join(tmpdir(), 'proc-'));
  afterAll(() => rmSync(proc, { recursive: true }));
  const directory = join(proc, '42');
  mkdirSync(directory);
  writeFileSync(join(directory, 'stat'), `42 (server) ${fields('100')}`);
  writeFileSync(join(directory, 'cgroup'), '0::/system.slice/x.service\n');
  symlinkSync('/usr/bin/server (deleted)', join(directory, 'exe'));

  test('is read where PID and start time agree, to the clock tick', () => {
    const expected = {
      comm: 'server',
      parentPid: 7,
      executablePath: '/usr/bin/server',
      cgroupPath: '/system.slice/x.service',
    };
    expect(readProcProcess(proc, 42, 1_000_000_000n)).toEqual(expected);
    expect(readProcProcess(proc, 42, 1_009_999_999n)).toEqual(expected);
  });

  test('is none where the PID belongs to another or to nobody', () => {
    expect(readProcProcess(proc, 42, 1_010_000_000n)).toBeUndefined();
    expect(readProcProcess(proc, 43, 1_000_000_000n)).toBeUndefined();
  });

  test('this process finds itself', () => {
    const { startTicks } = parseStat(readFileSync('/proc/self/stat', 'utf8'))!;
    const found = readProcProcess('/proc', process.pid, startTicks * 10_000_000n);
    expect(found).toMatchObject({ executablePath: process.execPath, parentPid: process.ppid });
  });
});

test('small files: a bound, and nothing for what is missing', () => {
  const path = join(tmpdir(), `small-${process.pid}`);
  writeFileSync(path, 'x'.repeat(40_000));
  expect(readSmallFile(path)).toHaveLength(16 * 1024);
  rmSync(path);
  expect(readSmallFile(path)).toBeUndefined();
});
