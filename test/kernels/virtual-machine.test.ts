/** What becomes of an emulator whose caller is ended, or busy. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, expect, it } from 'vitest';
import { packageRoot } from '../../agent/base/package-root.ts';

const MODULE = join(packageRoot(), 'dist/test/kernels/virtual-machine.js');
const folder = mkdtempSync(join(tmpdir(), 'everyframe-machine-'));
const pidFile = join(folder, 'pid');
const emulatorPid = (): number => Number(readFileSync(pidFile, 'utf8'));

function isRunning(pid: number): boolean {
  try {
    // a zombie that nobody waits for is not a running emulator
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

afterEach(() => {
  if (existsSync(pidFile) && isRunning(emulatorPid())) process.kill(emulatorPid(), 'SIGKILL');
  rmSync(pidFile, { force: true });
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Boots a script in an emulator's place. */
function startCaller(emulator: string, before = '') {
  writeFileSync(join(folder, 'qemu-system-x86_64'), `#!/bin/sh\n${emulator}`, { mode: 0o755 });
  const options = {
    architecture: 'amd64',
    kernel: '',
    initramfs: '',
    programsOnly: true,
    cpus: 1,
    limitMs: 600_000,
  };
  const script = `import(${JSON.stringify(MODULE)}).then(async (machine) => {
    machine.exitOnSignals();
    const booted = machine.boot(${JSON.stringify(options)});
    ${before}
    const { sections, failure } = await booted;
    console.log(JSON.stringify({ lines: sections.get('lines').length, failure }));
  })`;
  const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` };
  return spawn(process.execPath, ['-e', script], { env, stdio: ['ignore', 'pipe', 'inherit'] });
}

it.for(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s ends the emulator, too', async (signal) => {
  const caller = startCaller(`echo $$ >${pidFile}.new\nmv ${pidFile}.new ${pidFile}\nexec sleep 600\n`);
  const ended = once(caller, 'exit');
  await expect.poll(() => existsSync(pidFile)).toBe(true);
  expect(isRunning(emulatorPid())).toBe(true);
  caller.kill(signal);
  await ended;
  await expect.poll(() => isRunning(emulatorPid())).toBe(false);
});

it('an emulator prints while its caller is busy: the time of what it emulates does not stand still', async () => {
  const printed = join(folder, 'printed');
  const emulator = `echo '=== lines'\nseq 100000\necho '=== done'\ntouch ${printed}\n`;
  const isThere = `require('node:fs').existsSync(${JSON.stringify(printed)})`;
  const limit = 'const limit = Date.now() + 20_000;';
  const caller = startCaller(
    emulator,
    `${limit} while (!${isThere}) if (Date.now() > limit) throw new Error('held up');`,
  );
  const output = await text(caller.stdout);
  expect(JSON.parse(output)).toEqual({ lines: 100_000, failure: '' });
});
