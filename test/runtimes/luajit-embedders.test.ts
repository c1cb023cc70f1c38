/** LuaJIT with functions of C around it: modules, threads with interpreters of their own, FFI. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';
import { Recording, type Stack, share, total } from '../support/recording.ts';

const SAMPLES = 60;
const SCRIPT = join(import.meta.dirname, 'luajit/embedded.lua');
const canRun = !missingRights && existsSync('/usr/bin/luajit') && hasTool('gcc');
if (!canRun) console.log('skipped: LuaJIT or gcc is not installed, or this is not root');

/** Some of the functions of a stack, leaf first, in their order. */
const follows =
  (chain: readonly string[]) =>
  ({ frames }: Stack): boolean => {
    let at = -1;
    return chain.every((name) => {
      at = frames.indexOf(name, at + 1);
      return at >= 0;
    });
  };

describe.skipIf(!canRun)('a program with LuaJIT', () => {
  const programs = ['module', 'threads', 'callback', 'inlined', 'allocating'];
  const running = new Map<string, ChildProcess>();
  let recording: Recording;
  const stacksOf = (program: string): Stack[] => recording.stacks(running.get(program)!.pid);

  beforeAll(async () => {
    const module = compile('lua-module.so', 'gcc', ['-O1', '-shared', '-fPIC', '-pthread'], 'lua-module.c');
    for (const program of programs)
      running.set(
        program,
        spawn('nice', ['-n', '19', '/usr/bin/luajit', SCRIPT, module, program], { stdio: 'inherit' }),
      );
    recording = await Recording.start({ targets: [...running.values()].map(({ pid }) => toPid(pid!)) });
    await recording.until(() => programs.every((program) => stacksOf(program).some(follows(['(main)']))));
    recording.clear();
    await recording.until(() => programs.every((program) => total(stacksOf(program)) >= SAMPLES));
  }, 120_000);

  afterAll(async () => {
    for (const child of running.values()) child.kill('SIGKILL');
    await recording?.stop();
  });

  it.each([
    ['module', ['burn_in_c', 'burn', 'back', 'call_back', 'call', '(main)', 'lua_pcall', 'main']],
    ['callback', ['spin', 'qsort', '(main)', 'lua_pcall', 'main']],
    ['inlined', ['outer', '(main)', 'lua_pcall', 'main']],
    ['allocating', ['make', '(main)', 'lua_pcall', 'main']],
  ])('%s', (program, chain) => {
    expect(share(stacksOf(program), follows(chain))).toBeGreaterThan(0.97);
  });

  it('threads have the frames of their own interpreters', () => {
    const stacks = stacksOf('threads');
    for (const name of ['first', 'second']) {
      const own = stacks.filter(({ frames }) => frames.includes(name));
      expect(share(stacks, ({ frames }) => frames.includes(name))).toBeGreaterThan(0.2);
      expect(share(own, follows(['spin', name, '(main)', 'lua_pcall', 'run']))).toBe(1);
    }
    expect(
      share(stacks, ({ frames }) => frames.includes('first') || frames.includes('second')),
    ).toBeGreaterThan(0.95);
  });

  it('shows functions that a trace has inlined', () => {
    expect(share(stacksOf('inlined'), follows(['inner', 'outer']))).toBeGreaterThan(0.6);
  });
});
