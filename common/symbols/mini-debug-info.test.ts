/** MiniDebugInfo, made with the steps that the manual of GDB gives, and with xz's own options. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bufferSource } from '../base/byte-source.ts';
import { ElfError, type ElfFile, parseElf } from '../elf/elf.ts';
import { readSymbolTable } from './elf-symbols.ts';
import { DEFAULT_LIMITS, type MiniDebugInfoLimits, readMiniDebugInfo } from './mini-debug-info.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-mini-'));
const path = (name: string): string => join(directory, name);
const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: directory, encoding: 'latin1' });
const lines = (text: string): Set<string> => new Set(text.split('\n').filter(Boolean));
const hasXz = spawnSync('xz', ['--version']).status === 0;

/** Functions as nm lists them. */
let functions: { name: string; start: number; size: number }[] = [];

beforeAll(() => {
  const bodies = Array.from(
    { length: 200 },
    (_, i) => `static __attribute__((noinline)) int s${i}(int x) { return x * ${i + 3}; }`,
  );
  const calls = Array.from({ length: 200 }, (_, i) => `s${i}(c)`).join(' + ');
  writeFileSync(
    path('a.c'),
    `${bodies.join('\n')}\nint exported(int c) { return ${calls}; }\nint main(int c, char **v) { return exported(c); }\n`,
  );
  run('gcc', '-O1', '-rdynamic', '-o', 'full', 'a.c');
  functions = [...run('nm', '-S', 'full').matchAll(/^([0-9a-f]+) ([0-9a-f]+) [tT] (\S+)$/gm)].map(
    (match) => ({
      start: Number.parseInt(match[1]!, 16),
      size: Number.parseInt(match[2]!, 16),
      name: match[3]!,
    }),
  );
  const dynamic = lines(run('nm', '-D', '--format=just-symbols', '--defined-only', 'full'));
  const all = lines(run('nm', '--format=just-symbols', '--defined-only', 'full'));
  writeFileSync(path('keep'), [...all].filter((name) => !dynamic.has(name)).join('\n'));
  run('objcopy', '--only-keep-debug', 'full', 'debug');
  run('objcopy', '-S', '--remove-section', '.comment', '--keep-symbols=keep', 'debug', 'mini');
  run('strip', '--strip-all', '-o', 'stripped', 'full');
});
afterAll(() => rmSync(directory, { recursive: true }));

/** The stripped program with a section of these bytes. */
function withSection(bytes: Uint8Array): ElfFile {
  writeFileSync(path('section'), bytes);
  run('objcopy', '--add-section', '.gnu_debugdata=section', 'stripped', 'program');
  return parseElf(bufferSource(readFileSync(path('program'))));
}

const compress = (file: string, ...options: string[]): Buffer =>
  execFileSync('xz', ['-c', ...options, file], { cwd: directory, maxBuffer: 1 << 26 });
const reading = (bytes: Uint8Array, limits?: MiniDebugInfoLimits) =>
  readMiniDebugInfo(withSection(bytes), limits);

describe.skipIf(!hasXz)('.gnu_debugdata', () => {
  it.each([[], ['--check=crc32'], ['--check=none'], ['-0'], ['-9e'], ['--block-size=4096']])(
    'names what the program kept no names of (xz %s)',
    async (...options) => {
      const mini = readSymbolTable((await reading(compress('mini', ...options)))!);
      const own = readSymbolTable(withSection(Buffer.alloc(4)));
      expect(functions.filter(({ name }) => /^s\d+$/.test(name))).toHaveLength(200);
      for (const { name, start, size } of functions)
        for (const address of [start, start + size - 1])
          expect((mini.lookup(address) ?? own.lookup(address))?.name).toBe(name);
      expect(mini.lookup(functions.find(({ name }) => name === 'exported')!.start)).toBeUndefined();
    },
  );

  it('is not there in other programs', async () => {
    expect(await readMiniDebugInfo(parseElf(bufferSource(readFileSync(path('full')))))).toBeUndefined();
  });

  it('that grows beyond its limits costs an error', async () => {
    writeFileSync(path('zeros'), '');
    truncateSync(path('zeros'), 48 << 20);
    const bomb = compress('zeros');
    expect(bomb.length).toBeLessThan(64 << 10);
    await expect(reading(bomb)).rejects.toThrow(/more than \d+ bytes when decompressed/);
    await expect(reading(compress('mini'), { ...DEFAULT_LIMITS, bytes: 1000 })).rejects.toThrow(
      /more than 1000 bytes/,
    );
    await expect(reading(compress('mini'), { ...DEFAULT_LIMITS, compressedBytes: 100 })).rejects.toThrow(
      ElfError,
    );
    // a window of 1 GiB, which the decoder would have to keep
    await expect(reading(compress('mini', '--lzma2=dict=1GiB'))).rejects.toThrow(/cannot be decompressed/);
    // and the decoder is free for the next
    expect(await reading(compress('mini'))).toBeDefined();
  });

  it('that is cut off, empty of data or no xz costs an error', async () => {
    const whole = compress('mini');
    for (const bytes of [
      whole.subarray(0, 20),
      whole.subarray(0, -8),
      Buffer.from('no xz'),
      compress('keep'),
    ])
      await expect(reading(bytes)).rejects.toThrow(ElfError);
  });

  it('throws nothing but ElfError where bytes are changed', async () => {
    const whole = compress('mini');
    const { offset } = withSection(whole).section('.gnu_debugdata')!;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 })), {
          minLength: 1,
          maxLength: 8,
        }),
        async (changes) => {
          const bytes = Uint8Array.from(readFileSync(path('program')));
          for (const [at, mask] of changes) bytes[offset + at]! ^= mask;
          await readMiniDebugInfo(parseElf(bufferSource(bytes))).catch((error) =>
            expect(error).toBeInstanceOf(ElfError),
          );
        },
      ),
      { numRuns: 60 },
    );
  });
});
