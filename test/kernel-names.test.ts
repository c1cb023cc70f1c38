/** Kernel code that comes and goes while the agent runs, against /proc/kallsyms. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../common/base/brand.ts';
import { compile, missingRights } from './support/fixtures.ts';
import { Recording, type Stack, total } from './support/recording.ts';

const SAMPLES = 30;

const kallsyms = (): string => readFileSync('/proc/kallsyms', 'latin1');
/** Of our own programs: others on the machine may run, too. */
const namesOf = (stacks: Stack[]): Set<string> =>
  new Set(stacks.flatMap(({ frames }) => frames.filter((name) => /^bpf_prog_[0-9a-f]{16}_ef_/.test(name))));

describe.skipIf(missingRights)('BPF programs in kernel stacks', () => {
  let recording: Recording;
  let program: string;
  const running: ChildProcess[] = [];

  beforeAll(async () => {
    program = compile('bpf-spin', 'gcc', ['-O2'], 'bpf-spin.c');
    recording = await Recording.start({ targets: [] });
  });

  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL');
    await recording?.stop();
  });

  async function start(name: string): Promise<ChildProcess> {
    const child = spawn('nice', ['-n', '19', program, name], { stdio: ['ignore', 'pipe', 'inherit'] });
    running.push(child);
    recording.controller.addTarget(toPid(child.pid!));
    const ended = once(child, 'exit').then(() => Promise.reject(new Error(`${program} ended`)));
    await Promise.race([once(child.stdout!, 'data'), ended]);
    ended.catch(() => {});
    return child;
  }

  it('have the names of kallsyms, also those loaded since the agent started, and never one of another', async () => {
    for (const name of ['ef_first', 'ef_second']) {
      const child = await start(name);
      const [, full] = new RegExp(`^[0-9a-f]+ t (bpf_prog_[0-9a-f]{16}_${name})\t\\[bpf\\]$`, 'm').exec(
        kallsyms(),
      )!;
      const isNamed = ({ frames }: Stack) =>
        frames[0] === `${full}_[k]` && frames.some((frame) => /^bpf_(prog_)?test_run.*_\[k\]$/.test(frame));
      await recording.until(() => total(recording.stacks(child.pid).filter(isNamed)) >= SAMPLES);
      expect([...namesOf(recording.stacks(child.pid))]).toEqual([`${full}_[k]`]);
      // its memory is free for the next one
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  });

  it('and the kernel itself have build IDs', () => {
    const kernels = recording.profiles.flatMap(({ mappings }) =>
      mappings.filter((m) => m.filename === 'vmlinux'),
    );
    const notes = readFileSync('/sys/kernel/notes').toString('hex');
    expect(new Set(kernels.map(({ gnuBuildId }) => gnuBuildId.length))).toEqual(new Set([40]));
    expect(notes).toContain(`474e5500${kernels[0]!.gnuBuildId}`);
  });
});
