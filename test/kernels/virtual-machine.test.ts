/** What becomes of an emulator whose caller is ended. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { packageRoot } from '../../agent/tracer/package-root.ts';

const MODULE = join(packageRoot(), 'dist/test/kernels/virtual-machine.js');
const folder = mkdtempSync(join(tmpdir(), 'everyframe-machine-'));
const pidFile = join(folder, 'pid');
const emulatorPid = (): number => Number(readFileSync(pidFile, 'utf8'));

function isRunning(pid: number): boolean {
  try {
    // a zombie that nobody waits for is no running emulator
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

it.for(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s ends the emulator, too', async (signal) => {
  const emulator = `#!/bin/sh\necho $$ >${pidFile}.new\nmv ${pidFile}.new ${pidFile}\nexec sleep 600\n`;
  writeFileSync(join(folder, 'qemu-system-x86_64'), emulator, { mode: 0o755 });
  const options = {
    architecture: 'amd64',
    kernel: '',
    initramfs: '',
    programsOnly: true,
    cpus: 1,
    limitMs: 600_000,
  };
  const script = `import(${JSON.stringify(MODULE)}).then((machine) => {
    machine.exitOnSignals();
    return machine.boot(${JSON.stringify(options)});
  })`;
  const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` };
  const caller = spawn(process.execPath, ['-e', script], { env, stdio: 'ignore' });
  const ended = once(caller, 'exit');
  await expect.poll(() => existsSync(pidFile)).toBe(true);
  expect(isRunning(emulatorPid())).toBe(true);
  caller.kill(signal);
  await ended;
  await expect.poll(() => isRunning(emulatorPid())).toBe(false);
});
