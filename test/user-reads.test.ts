/** What keeps a locked-down kernel from losing BPF's reads of user memory, in a kernel that is not: there nothing may change. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, expect, it, vi } from 'vitest';
import { loadNative } from '../agent/base/native.ts';
import { toPid } from '../common/base/brand.ts';
import { valueTypeName } from '../common/profile/model/profile-type.ts';
import { OFF_CPU } from '../common/profile/model/thread-types.ts';
import { compile, missingRights } from './support/fixtures.ts';
import { Recording } from './support/recording.ts';

const started: ChildProcess[] = [];
afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
});

it.skipIf(missingRights)('programs load, are attached and take whole stacks behind handlers', async () => {
  const native = loadNative();
  vi.spyOn(native, 'probeFeatures').mockReturnValue({ ...native.probeFeatures(), kernelReads: false });
  const deep = compile('deep-user-reads', 'gcc', ['-O2', '-fomit-frame-pointer'], 'deep.c');
  const [busy, idle] = [spawn(deep, ['40']), spawn('sleep', ['1000'])];
  started.push(busy, idle);
  const recording = await Recording.start({
    targets: [busy, idle].map(({ pid }) => toPid(pid!)),
    offCpu: { budget: 200 },
  });
  await recording.until((stacks) =>
    stacks.some(({ frames }) => frames.filter((f) => f === 'recurse').length === 40),
  );
  const waits = () =>
    recording.profiles.filter(
      ({ type, samples }) => valueTypeName(type.sampleType) === OFF_CPU && samples.length > 0,
    );
  await recording.until(() => waits().length > 0);
  await recording.stop();
  expect(recording.warnings).toEqual([]);
});
