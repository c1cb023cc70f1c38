/** Files are compiled here: they need a compiler, no rights. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { parseElf } from '../../../common/elf/elf.ts';
import { compile, hasTool, scratchFolder } from '../../../test/support/fixtures.ts';
import { detectPython, type PythonBinary } from './detect-python.ts';
import { python } from './plugin.ts';

const FLAGS = ['-O2', '-pthread'];
const SHARED = [...FLAGS, '-shared', '-fPIC'];

const elfOf = (path: string) => parseElf(bufferSource(readFileSync(path)));
const find = (name: string, ...flags: string[]): PythonBinary | undefined =>
  detectPython(elfOf(compile(name, 'gcc', flags, 'fake-python.c')));

/** A C library of which only its name matters. */
function compileLibc(soname: string): string {
  const path = join(scratchFolder, `lib-named-${soname}`);
  const source = 'int pthread_key_create; int pthread_getspecific;';
  execFileSync(
    'gcc',
    ['-shared', '-nostdlib', '-fPIC', `-Wl,-soname,${soname}`, '-o', path, '-x', 'c', '-'],
    { input: source },
  );
  return path;
}

describe.skipIf(!hasTool('gcc') || process.arch !== 'x64')('a file that says it is CPython', () => {
  it('is found as a program and as a library, whatever its name', () => {
    const [program, library] = [find('a-program', ...FLAGS, '-rdynamic'), find('a-library', ...SHARED)];
    for (const found of [program, library])
      expect(found).toMatchObject({ minor: 12, version: '3.12.1', isFreeThreaded: false, isMusl: false });
    expect(program!.evalRanges.length).toBeGreaterThan(0);
    expect(program!.bound.kind).toBe('key');
  });

  it('becomes an entry for BPF', () => {
    const detected = python.detect(
      elfOf(compile('for-bpf', 'gcc', [...FLAGS, '-rdynamic'], 'fake-python.c')),
    );
    expect(detected).toMatchObject({ runtime: 'cpython', version: '3.12.1' });
    expect(Buffer.from(detected!.entry).some((byte) => byte !== 0)).toBe(true);
  });

  it.each([
    ['libc.so', true],
    ['libc.musl-x86_64.so.1', true],
    ['libc.so.6', false],
  ])('that needs %s uses musl: %s', (soname, isMusl) => {
    const flags = [...SHARED, '-nodefaultlibs', '-Wl,--no-as-needed', compileLibc(soname)];
    expect(find(`python-with-${soname}`, ...flags)).toMatchObject({ isMusl });
  });

  it.skipIf(!hasTool('musl-gcc'))('as a library for this musl uses it', () => {
    const path = compile('python-musl', 'musl-gcc', SHARED, 'fake-python.c');
    expect(detectPython(elfOf(path))).toMatchObject({ isMusl: true });
  });

  it('and is not CPython is none', () => {
    expect(detectPython(elfOf(compile('spin', 'gcc', ['-O2', '-pthread'], 'threads.c')))).toBeUndefined();
  });
});
