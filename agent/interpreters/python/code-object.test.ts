/** Code objects of a live interpreter, compared with what it says of them itself. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { parseElf } from '../../../common/elf/elf.ts';
import type { ProcessMemory } from '../contract.ts';
import { type CodeObject, codeCookie, placeOf, readCodeObject } from './code-object.ts';
import { detectPython, type PythonBinary } from './detect-python.ts';

interface Dumped {
  address: number;
  name: string;
  file: string;
  firstLine: number;
  places: [offset: number, line: number, column: number][];
}

function memoryOf(pid: number): ProcessMemory & { fd: number } {
  const fd = openSync(`/proc/${pid}/mem`, 'r');
  return {
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
    python = detectPython(parseElf(bufferSource(readFileSync(`/proc/${child.pid}/exe`))))!;
    memory = memoryOf(child.pid!);
  });

  afterAll(() => {
    closeSync(memory.fd);
    child.stdin.end();
  });

  /** A script that prints the address of a code object and then waits for lines. */
  async function startPython(script: string, ...args: string[]) {
    const running = spawn(PYTHON, ['-c', script, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONIOENCODING: 'utf-8' },
    });
    const lines = createInterface(running.stdout)[Symbol.asyncIterator]();
    const address = Number.parseInt((await lines.next()).value!, 10);
    const from = memoryOf(running.pid!);
    const bytes = from.read(address, 192)!;
    const cookie = codeCookie(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), python.layout);
    return {
      read: () => readCodeObject(from, python, address, cookie),
      async send() {
        running.stdin.write('\n');
        await lines.next();
      },
      async end() {
        closeSync(from.fd);
        running.stdin.end();
        running.kill();
      },
    };
  }

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

  it('have names that are of a subclass of str', async () => {
    const script = `
import sys
class Name(str): pass
code = compile('def f(): pass', Name('file_λ.py'), 'exec').co_consts[0]
if sys.version_info >= (3, 11): code = code.replace(co_name=Name('named'), co_qualname=Name('Some.named'))
elif sys.version_info >= (3, 8): code = code.replace(co_name=Name('named'))
print(id(code), flush=True)
input()`;
    const { read, end } = await startPython(script);
    expect(read()).toMatchObject({ file: 'file_λ.py', name: expect.stringMatching(/^(Some\.)?(named|f)$/) });
    await end();
  });

  it('that were freed have no name, but for the code of modules', async () => {
    const script = `
import sys
code = compile('def f():\\n  ' + 'x = 1; ' * 400, 'freed_file.py', 'exec')
if sys.argv[1] == 'function': code = code.co_consts[0]
print(id(code), flush=True)
input()
del code
print('freed', flush=True)
input()`;
    for (const [kind, name] of [
      ['function', 'f'],
      ['module', '<module>'],
    ] as const) {
      const { read, send, end } = await startPython(script, kind);
      expect(read()).toMatchObject({ name, file: 'freed_file.py' });
      await send();
      const freed = read();
      expect(freed === 'replaced' || (kind === 'module' && (freed as CodeObject).name === name)).toBe(true);
      await end();
    }
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
