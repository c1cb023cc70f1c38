/** Processes with a JIT that is none of the runtimes that are unwound: each costs one question, and no attempt to attach. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { compile, hasTool, missingRights, scratchFolder } from '../support/fixtures.ts';
import { Recording, total } from '../support/recording.ts';

/** How each of them says what its code is called, and in what kind of memory it lies. */
const KINDS = [['map'], ['dump'], ['silent'], ['silent', 'memfd'], ['silent', 'shared']] as const;
const EACH = 2;
const SAMPLES = 5;

const canRun = !missingRights && hasTool('java') && hasTool('javac');
if (!canRun && !missingRights) console.log('skipped: java and javac are not installed');

describe.skipIf(!canRun)('processes with a JIT of nobody', () => {
  const running: ChildProcess[] = [];
  const jits: number[] = [];
  const dumps = join(scratchFolder, 'other-jits');
  let recording: Recording | undefined;

  const start = (program: string, ...args: string[]): number => {
    const child = spawn('nice', ['-n', '19', program, ...args], { stdio: ['pipe', 'ignore', 'ignore'] });
    running.push(child);
    return child.pid!;
  };
  const counter = (name: string): number => recording!.controller.counters()[name] ?? 0;

  beforeAll(async () => {
    const jit = compile('other-jit', 'gcc', ['-O2'], 'jit.c');
    mkdirSync(dumps);
    const source = join(scratchFolder, 'Spin.java');
    writeFileSync(
      source,
      'class Spin { public static void main(String[] a) { for (long i = 0; ; i++) if (i < 0) return; } }',
    );
    // with the runtimes loaded whose the code could be
    const known = [start('java', source), start('node', '-e', 'for (;;);')];
    for (const [how, memory] of KINDS) {
      for (let i = 0; i < EACH; i++) {
        const where = how === 'silent' ? '-' : how === 'map' ? 'jit:' : dumps;
        jits.push(start(jit, how, where, ...(memory ? [memory] : [])));
      }
    }
    recording = await Recording.start({ targets: [...known, ...jits].map(toPid) });
    await recording.until(
      () => counter('samplers.runtimes') >= 2 && counter('processRuntimes.attached') >= 1,
    );
    recording.clear();
    await recording.until(() => jits.every((pid) => total(recording!.stacks(pid)) >= SAMPLES), 110_000);
  });

  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL');
    await recording?.stop();
    rmSync(dumps, { recursive: true, force: true });
  });

  it('are asked about when they are met, and not with each sample', { timeout: 120_000 }, async () => {
    // a slow machine asks some again, while the files of the JVM and of Node are not known yet
    const most = 2 * running.length;
    expect(counter('processRuntimes.asked')).toBeGreaterThan(0);
    recording!.clear();
    await recording!.until(() => jits.every((pid) => total(recording!.stacks(pid)) >= most), 110_000);
    expect(counter('processRuntimes.asked')).toBeLessThanOrEqual(most);
  });

  it('cost no attempt to attach, nor a place among those that are attached to', () => {
    expect(counter('processRuntimes.noFile')).toBe(0);
    expect(counter('processRuntimes.refused')).toBe(0);
    expect(counter('processRuntimes.processes')).toBe(1);
  });
});
