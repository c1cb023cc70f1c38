/** Code objects of a live interpreter, compared with what it says of them itself. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseElf } from '../../../common/elf/elf.ts';
import { bufferSource } from '../../../common/elf/source.ts';
import type { ProcessMemory } from '../contract.ts';
import { type CodeObject, codeCookie, placeOf, readCodeObject } from './code-object.ts';
import { findPython, type PythonBinary } from './find-python.ts';

interface Dumped {
  address: number;
  name: string;
  file: string;
  firstLine: number;
  places: [offset: number, line: number, column: number][];
}

const PYTHON = '/usr/bin/python3';
if (!existsSync(PYTHON)) console.log(`skipped: code objects, ${PYTHON} is not installed`);

describe.skipIf(!existsSync(PYTHON))('code objects', () => {
  let child: ChildProcessByStdio<Writable, Readable, null>;
  let python: PythonBinary;
  let memory: ProcessMemory & { fd: number };
  const dumped: Dumped[] = [];

  beforeAll(async () => {
    const script = join(import.meta.dirname, '../../../test/runtimes/python/dump-code.py');
    child = spawn(PYTHON, [script], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONIOENCODING: 'utf-8' },
    });
    for await (const line of createInterface(child.stdout)) {
      if (line === 'done') break;
      dumped.push(JSON.parse(line) as Dumped);
    }
    python = findPython(parseElf(bufferSource(readFileSync(`/proc/${child.pid}/exe`))))!;
    const fd = openSync(`/proc/${child.pid}/mem`, 'r');
    memory = {
      fd,
      read(address, length) {
        const bytes = Buffer.alloc(length);
        try {
          return bytes.subarray(0, readSync(fd, bytes, 0, length, address));
        } catch {
          return undefined;
        }
      },
    };
  });

  afterAll(() => {
    closeSync(memory.fd);
    child.stdin.end();
  });

  const cookieOf = ({ address }: Dumped): number => {
    const bytes = memory.read(address, 192)!;
    return codeCookie(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), python.layout);
  };
  const read = (code: Dumped, from: ProcessMemory = memory) =>
    readCodeObject(from, python, code.address, cookieOf(code));

  it('have the names, files and first lines that Python says', () => {
    expect(dumped.length).toBeGreaterThan(100);
    for (const code of dumped) {
      const { name, file, firstLine } = code;
      expect(read(code)).toMatchObject({ name, file, firstLine });
    }
    expect(dumped.map(({ name }) => name).join()).toMatch(/función_λ.*漢字/);
  });

  it('have the line and column of every instruction that Python says', () => {
    let wrong = 0;
    let total = 0;
    for (const code of dumped) {
      const object = read(code) as CodeObject;
      for (const [offset, line, column] of code.places) {
        const place = placeOf(object, offset);
        total++;
        if (place.line !== (line || code.firstLine) || (line > 0 && place.column !== column)) wrong++;
      }
    }
    expect(total).toBeGreaterThan(10_000);
    expect(wrong).toBe(0);
  });

  it('are not taken for each other', () => {
    const [one, other] = [dumped[1]!, dumped[2]!];
    expect(readCodeObject(memory, python, one.address, cookieOf(other))).toBe('replaced');
    expect(readCodeObject(memory, python, 4096, cookieOf(one))).toBe('unreadable');
  });

  it('with absurd sizes are read up to a limit', () => {
    const code = dumped[1]!;
    const cookie = cookieOf(code);
    let asked = 0;
    /** Every str and bytes object is a terabyte long. */
    const huge: ProcessMemory = {
      read(address, length) {
        const bytes = memory.read(address, length);
        if (!bytes || length === 192) return bytes;
        asked += length;
        const copy = Buffer.alloc(length, bytes);
        if (length >= 24 && length <= 48) copy.writeBigUInt64LE(2n ** 40n, 16);
        return copy;
      },
    };
    const result = readCodeObject(huge, python, code.address, cookie);
    expect(typeof result === 'string' || result.name.length <= 1025).toBe(true);
    expect(asked).toBeLessThan(4 << 20);
  });
});
