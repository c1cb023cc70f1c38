import { mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { ForeignReader } from './foreign-reader.ts';
import { mappedExecutables, runningFiles } from './mapped-files.ts';

const proc = mkdtempSync(join(tmpdir(), 'mapped-files-'));
const reader = new ForeignReader({ proc });
afterAll(() => {
  reader.close();
  rmSync(proc, { recursive: true });
});

/** A process of this machine that runs a program with these libraries. */
function addProcess(pid: number, program: string, libraries: string[] = [], root = '/'): void {
  const directory = join(proc, String(pid));
  mkdirSync(directory);
  symlinkSync(program, join(directory, 'exe'));
  symlinkSync(root, join(directory, 'root'));
  const lines = [program, ...libraries].flatMap((path, i) => [
    `00${i + 1}00000-00${i + 1}40000 r-xp 00000000 08:01 ${i + 7}                  ${path}`,
    `00${i + 1}40000-00${i + 1}50000 rw-p 00040000 08:01 ${i + 7}                  ${path}`,
  ]);
  writeFileSync(join(directory, 'maps'), `${lines.join('\n')}\n`);
}

addProcess(10, '/usr/bin/python3.11', ['/lib/libc.so.6', '/opt/my libs/libpython3.11.so.1.0']);
addProcess(11, '/usr/bin/python3.11', ['/lib/libc.so.6']);
addProcess(12, '/bin/sh', ['/lib/libpython3.9.so']);
addProcess(13, '/usr/bin/python3.13', [], proc);
addProcess(9, '/usr/bin/python3.11', [], proc);
mkdirSync(join(proc, '14'));
mkdirSync(join(proc, 'sys'));
const isPython = (name: string): boolean => /^(lib)?python/.test(name);

describe('mappedExecutables', () => {
  it('names each executable mapping of this very process once', () => {
    const files = mappedExecutables(toPid(process.pid), new ForeignReader());
    expect(new Set(files.map(({ path }) => path)).size).toBe(files.length);
    for (const { link } of files) expect(link).toMatch(/^\/proc\/\d+\/map_files\/[0-9a-f]+-[0-9a-f]+$/);
    expect(files.map(({ path }) => path)).toContain(readlinkSync('/proc/self/exe'));
    if (process.getuid?.() !== 0) return;
    for (const { path, link } of files) expect(readlinkSync(link)).toBe(path);
  });

  it('names nothing of a process that is gone, or that has another root', () => {
    expect(mappedExecutables(toPid(0x3fff_ffff), new ForeignReader())).toEqual([]);
    expect(mappedExecutables(toPid(13), reader, proc)).toEqual([]);
  });
});

describe('runningFiles', () => {
  it('finds programs and their libraries by name, each program once, and none in containers', () => {
    expect(runningFiles(isPython, reader, proc)).toEqual([
      join(proc, '10/map_files/100000-140000'),
      join(proc, '10/map_files/300000-340000'),
    ]);
  });
});
