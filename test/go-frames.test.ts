/** Which frames of Go programs are Go's, and which are of C. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import type { Profile } from '../common/profile/model/profile.ts';
import { compile, hasTool, missingRights } from './support/fixtures.ts';
import { Recording } from './support/recording.ts';

const skipped = missingRights || (hasTool('go') ? '' : 'go is not installed');
if (skipped) console.log(`skipped: ${skipped}`);

let recording: Recording | undefined;
let program: ChildProcess | undefined;
afterEach(async () => {
  program?.kill('SIGKILL');
  await recording?.stop();
});

/** `type name` of each frame, leaf first, of the stacks with one more name. */
function stacksOf(profile: Profile, pid: number, name: string): string[][] {
  return profile.samples
    .filter((sample) => profile.processes[sample.process]!.pid === pid)
    .map(({ stack }) =>
      [...profile.stacks[stack]!].flatMap((at) => {
        const { frameType, lines } = profile.locations[at]!;
        return lines.map(
          ({ func }) => `${frameType} ${profile.functions[func]!.name.replace(/\.abi0$/, '')}`,
        );
      }),
    )
    .filter((stack) => stack.some((frame) => frame.endsWith(` ${name}`)));
}

describe.skipIf(skipped)('frames of Go', () => {
  it.each([
    ['as it is built', []],
    ["linked by Go's own linker, whose text has C in it", ['-ldflags=-linkmode=internal']],
    ['position-independent', ['-buildmode=pie']],
  ])('are told from those of C: %s', async (_, flags) => {
    const path = compile(`cgo-loop${flags.join('')}`, 'go', ['build', ...flags], 'cgo-loop.go');
    recording = await Recording.start();
    program = spawn(path, { stdio: 'ignore' });
    const { profiles } = recording;
    const pid = program.pid!;
    const all = (name: string): string[][] => profiles.flatMap((profile) => stacksOf(profile, pid, name));
    const whole = (name: string): string[] | undefined =>
      all(name).find((stack) => stack.includes('go main.main') && stack.at(-1) === 'go runtime.goexit');
    // Go's linker drops the unwind information of C: with it the stack may end there
    await recording.until(() => all('in_c').length > 0 && whole('main.inGo') !== undefined);
    expect(whole('main.inGo')!.filter((frame) => !frame.startsWith('kernel'))).toEqual([
      'go main.inGo',
      'go main.work',
      'go main.main',
      'go runtime.main',
      'go runtime.goexit',
    ]);
    const frames = new Set([...all('in_c'), ...all('main.inGo')].flat());
    expect(frames).toContain('native in_c');
    expect([...frames].filter((frame) => /^native (main|runtime)\.|^go (in_c|_cgo_)/.test(frame))).toEqual(
      [],
    );
  });

  it('are known in a stripped program', async () => {
    const path = compile('deep-stripped', 'go', ['build', '-ldflags=-s -w'], 'deep.go');
    recording = await Recording.start();
    program = spawn(path, { stdio: 'ignore' });
    const { profiles } = recording;
    const pid = program.pid!;
    const deep = (): string[] | undefined =>
      profiles
        .flatMap((profile) => stacksOf(profile, pid, 'main.leaf'))
        .find((stack) => stack.at(-1) === 'go runtime.goexit');
    await recording.until(() => deep() !== undefined);
    expect(deep()!.filter((frame) => frame === 'go main.recurse')).toHaveLength(40);
  });
});
