import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { toFileKey, toPid } from '../../common/base/brand.ts';
import { ForeignReader } from '../processes/foreign-reader.ts';
import { newExecutable } from './executable.ts';
import { findRuntimeFile } from './runtime-file.ts';

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
  expect(findRuntimeFile(PID, [libjvm], reader)).toEqual({ key: KEY, base: 0x7f0000000000 });
});

it('may have been deleted since', () => {
  write('7f0000100000-7f0000900000 r-xp 00100000 00:31 77 /jdk/libjvm.so (deleted)');
  expect(findRuntimeFile(PID, [libjvm], reader)).toEqual({ key: KEY, base: 0x7f0000000000 });
});

it('is none of another inode or name, nor of a process that is gone', () => {
  write(
    '7f0000100000-7f0000900000 r-xp 00100000 00:31 78 /jdk/libjvm.so',
    '7f0000900000-7f0000a00000 r-xp 00100000 00:31 77 /jdk/notlibjvm.so',
  );
  expect(findRuntimeFile(PID, [libjvm], reader)).toBeUndefined();
  expect(findRuntimeFile(toPid(4712), [libjvm], reader)).toBeUndefined();
  expect(findRuntimeFile(PID, [], reader)).toBeUndefined();
});
