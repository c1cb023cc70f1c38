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

/** `type name` of each frame but the kernel's, leaf first, of the stacks with one more name. */
function stacksOf(profile: Profile, pid: number, name: string | RegExp): string[][] {
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
    .map((stack) => stack.filter((frame) => !frame.startsWith('kernel')))
    .filter((stack) =>
      stack.some((frame) => (typeof name === 'string' ? frame.endsWith(` ${name}`) : name.test(frame))),
    );
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
    // as a leaf: the signal that asks a goroutine to give way may stand on any of its frames
    const whole = (name: string): string[] | undefined =>
      all(name).find((stack) => stack[0] === `go ${name}` && stack.at(-1) === 'go runtime.goexit');
    // Go's linker drops the unwind information of C: with it the stack may end there
    await recording.until(() => all('in_c').length > 0 && whole('main.inGo') !== undefined);
    expect(whole('main.inGo')).toEqual([
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

  const whole = async (path: string, library: string, root: RegExp): Promise<string[]> => {
    recording = await Recording.start();
    program = spawn(path, [library], { stdio: 'ignore' });
    const { profiles } = recording;
    const pid = program.pid!;
    const spin = /[./ ](main|unnamed-\w+)\.spin$/;
    const found = (): string[] | undefined =>
      profiles
        .flatMap((profile) => stacksOf(profile, pid, spin))
        .find((stack) => spin.test(stack[0]!) && root.test(stack.at(-1)!));
    await recording.until(() => found() !== undefined);
    // a plugin without a module has a name made of a hash
    return found()!.map((frame) => frame.replace(/plugin\/unnamed-\w+/, 'unnamed'));
  };

  it('are known in a library that a program in C loads', async () => {
    const library = compile('spin-shared.so', 'go', ['build', '-buildmode=c-shared'], 'spin-shared.go');
    const frames = await whole(
      compile('calls-go', 'gcc', ['-O1', '-ldl'], 'calls-go.c'),
      library,
      /^native _start$/,
    );
    expect(frames.slice(0, 2)).toEqual(['go main.spin', 'go main.Spin']);
    expect(frames).toContain('go runtime.cgocallback');
    expect(frames).toContain('native main');
  });

  it('are known in a plugin', async () => {
    const library = compile('spin-plugin.so', 'go', ['build', '-buildmode=plugin'], 'spin-shared.go');
    const path = compile('loads-plugin', 'go', ['build'], 'loads-plugin.go');
    const frames = await whole(path, library, /^go runtime\.goexit$/);
    expect(frames).toEqual([
      'go unnamed.spin',
      'go unnamed.Spin',
      'go main.main',
      'go runtime.main',
      'go runtime.goexit',
    ]);
  });
});
