/** Programs that can't be opened, and are read out of the memory of those who run them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { toPid } from '../common/base/brand.ts';
import { compile, missingRights, scratchFolder } from './support/fixtures.ts';
import { Recording, type Stack, total } from './support/recording.ts';

const SAMPLES = 30;
const NO_FUSE = "FUSE can't be mounted";
const STACK = ['image_leaf', 'image_caller', 'main'];
if (missingRights) console.log(`skipped: programs that can't be opened (${missingRights})`);

let recording: Recording;
let image = '';
let launcher = '';
const running: ChildProcess[] = [];

beforeAll(async () => {
  if (missingRights) return;
  image = compile('image', 'gcc', ['-O2', '-fno-omit-frame-pointer', '-rdynamic', '-s'], 'image.c');
  launcher = compile('private-mount', 'gcc', ['-O1'], 'private-mount.c');
  recording = await Recording.start({ targets: [] });
});
afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
});
afterAll(() => recording?.stop());

function started(...command: string[]): ChildProcess {
  const script = 'read _ && exec nice -n 19 "$@"';
  const child = spawn('sh', ['-c', script, 'sh', ...command], { stdio: ['pipe', 'ignore', 'inherit'] });
  running.push(child);
  recording.controller.addTarget(toPid(child.pid!));
  child.stdin!.write('\n');
  return child;
}

/** Its user has to get there. */
const mount = mkdtempSync(join(tmpdir(), 'everyframe-private-'));
chmodSync(mount, 0o755);
process.on('exit', () => rmSync(mount, { recursive: true }));

const startPrivate = (...args: string[]): ChildProcess => started(launcher, mount, image, ...args);

const isWhole = ({ frames }: Stack): boolean =>
  frames.slice(0, 3).join() === STACK.join() && frames.at(-1) === '_start';

async function untilWhole(child: ChildProcess, isIt: (stack: Stack) => boolean = isWhole): Promise<boolean> {
  const stacks = (): Stack[] => recording.stacks(child.pid).filter(isIt);
  await recording.until(() => child.exitCode !== null || total(stacks()) >= SAMPLES, 20_000);
  expect([null, 3]).toContain(child.exitCode);
  return child.exitCode !== 3;
}

const copied = (): number => recording.controller.counters()['executables.copied']!;

it.skipIf(missingRights)("a program on another user's FUSE mount is unwound and named", async (context) => {
  const before = copied();
  if (!(await untilWhole(startPrivate()))) context.skip(NO_FUSE);
  expect(copied()).toBe(before + 1);
});

it.skipIf(missingRights)('what its process wrote over does not count as the file', async (context) => {
  // the page is not there, but its rules and names are
  if (!(await untilWhole(startPrivate('overwrite')))) context.skip(NO_FUSE);
});

it.skipIf(missingRights)('a program whose file is gone, in a mount namespace that is gone', async () => {
  const program = join(scratchFolder, 'gone');
  const folder = mkdtempSync(join(scratchFolder, 'mount-'));
  copyFileSync(image, program);
  const script = `mount -t tmpfs none ${folder} && cp ${program} ${folder}/p && exec 9<${folder}/p && rm ${folder}/p && exec /proc/self/fd/9`;
  const child = started('unshare', '-m', 'sh', '-c', script);
  await untilWhole(child);
  rmSync(program);
});

it.skipIf(missingRights)('a program that only memory holds (memfd)', async () => {
  const script = `import os,sys
f=os.memfd_create('program',0)
os.write(f,open(sys.argv[1],'rb').read())
os.execve(f,['program'],{})`;
  await untilWhole(started('python3', '-c', script, image));
});
