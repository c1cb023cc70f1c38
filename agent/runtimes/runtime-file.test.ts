import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { toFileKey, toPid } from '../../common/base/brand.ts';
import { newExecutable } from '../executables/files/executable.ts';
import { ForeignReader } from '../processes/foreign-reader.ts';
import { findRuntimeFiles } from './runtime-file.ts';

const proc = mkdtempSync(join(tmpdir(), 'everyframe-proc-'));
const reader = new ForeignReader({ proc });
afterAll(() => {
  reader.close();
  rmSync(proc, { recursive: true, force: true });
});

const PID = toPid(4711);
const KEY = toFileKey('00000000000000aa');
const identity = (inode: bigint) => ({ inode, size: 1n, ctimeNs: 0n, device: 0 });
const libjvm = newExecutable(KEY, '/jdk/lib/server/libjvm.so', identity(77n));
libjvm.runtime = { runtime: 'hotspot', version: '17', facts: undefined, entry: new Uint8Array() };
const found = {
  places: [{ runtime: 'hotspot', key: KEY, base: 0x7f0000000000 }],
  isComplete: true,
  unmet: [],
};

function write(...lines: string[]): void {
  mkdirSync(join(proc, String(PID)), { recursive: true });
  writeFileSync(join(proc, `${PID}/maps`), `${lines.join('\n')}\n`);
}

it('is the one whose code is mapped, by inode and name, and says from where its offsets count', () => {
  write(
    '7f0000000000-7f0000100000 r--p 00000000 00:31 77                         /usr/lib/jvm/lib/server/libjvm.so',
    '7f0000100000-7f0000900000 r-xp 00100000 00:31 77                         /usr/lib/jvm/lib/server/libjvm.so',
    '7f0001000000-7f0001100000 rwxp 00000000 00:00 0 ',
  );
  expect(findRuntimeFiles(PID, [libjvm], reader)).toEqual(found);
});

it('may have been deleted since', () => {
  write('7f0000100000-7f0000900000 r-xp 00100000 00:31 77 /jdk/libjvm.so (deleted)');
  expect(findRuntimeFiles(PID, [libjvm], reader)).toEqual(found);
});

it('is none of another inode or name; one that is called after a runtime may hold one all the same', () => {
  write(
    '7f0000100000-7f0000900000 r-xp 00100000 00:31 78 /jdk/libjvm.so',
    '7f0000900000-7f0000a00000 r-xp 00100000 00:31 77 /jdk/notlibjvm.so',
  );
  expect(findRuntimeFiles(PID, [libjvm], reader)).toEqual({
    places: [],
    isComplete: false,
    unmet: [`/proc/${PID}/map_files/7f0000100000-7f0000900000`],
  });
  write('7f0000100000-7f0000900000 r-xp 00100000 00:31 78 /usr/bin/guile');
  expect(findRuntimeFiles(PID, [libjvm], reader)).toEqual({ places: [], isComplete: true, unmet: [] });
});

it('is waited for until a file that is called after a runtime was read, whatever is in it', () => {
  write('7f0000100000-7f0000900000 r-xp 00100000 00:31 79 /jdk/bin/java');
  const launcher = newExecutable(toFileKey('00000000000000bb'), '/jdk/bin/java', identity(79n));
  for (const [state, isComplete] of [
    ['reading', false],
    ['failed', false],
    ['ready', true],
    ['not-elf', true],
  ] as const) {
    launcher.state = state;
    expect(findRuntimeFiles(PID, [libjvm, launcher], reader), state).toEqual({
      places: [],
      isComplete,
      unmet: [],
    });
  }
});

it('is the one with a runtime where several have that inode and name, as in containers', () => {
  const other = newExecutable(toFileKey('00000000000000cc'), '/old/libjvm.so', identity(77n));
  other.state = 'ready';
  write('7f0000100000-7f0000900000 r-xp 00100000 00:31 77 /jdk/libjvm.so');
  expect(findRuntimeFiles(PID, [other, libjvm], reader)).toEqual(found);
});

it('is not known of a process that is gone', () => {
  expect(findRuntimeFiles(toPid(4712), [libjvm], reader)).toEqual({
    places: [],
    isComplete: false,
    unmet: [],
  });
});
