/** Debian's debuginfod server on the loopback: names of a stripped program come from it, and only when asked for. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Executables } from '../agent/executables/executables.ts';
import { kernelDevice } from '../agent/executables/files/open-file.ts';
import { Debuginfod } from '../agent/symbolizer/debuginfod/debuginfod.ts';
import { debuginfodFromEnvironment } from '../agent/symbolizer/debuginfod/debuginfod-settings.ts';
import { createFileWorkers } from '../agent/workers/file-workers.ts';
import { toFileKey, toPid } from '../common/base/brand.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');
const isInstalled = spawnSync('debuginfod', ['--version']).status === 0;
if (!isInstalled) console.log('skipped: debuginfod is not installed (scripts/setup.sh --test installs it)');

const directory = mkdtempSync(join(tmpdir(), 'everyframe-debuginfod-'));
const path = (name: string): string => join(directory, name);
const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: directory, encoding: 'latin1' });
let server: ChildProcess | undefined;
let env: Record<string, string> = {};
let work = 0;

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => probe.once('listening', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

describe.skipIf(!isInstalled)('debuginfod', () => {
  beforeAll(async () => {
    mkdirSync(path('served'));
    writeFileSync(
      path('a.c'),
      'static inline __attribute__((always_inline)) int twice(int x) {\n  volatile int y = x;\n  return y + y;\n}\n' +
        '__attribute__((noinline)) int work(int x) { return twice(x); }\nint main(int c, char **v) { return work(c); }\n',
    );
    run('gcc', '-O1', '-g', '-Wl,--build-id=sha1', '-o', 'full', 'a.c');
    work = Number.parseInt(/^([0-9a-f]+) T work$/m.exec(run('nm', 'full'))![1]!, 16);
    run('objcopy', '--only-keep-debug', 'full', 'served/full.debug');
    run('strip', '--strip-all', '-o', 'program', 'full');
    const buildId = /Build ID: ([0-9a-f]+)/.exec(run('readelf', '-n', 'program'))![1]!;
    const port = await freePort();
    server = spawn('debuginfod', ['-F', '-d', ':memory:', '-p', `${port}`, '-t', '1', path('served')], {
      env: { ...process.env, HOME: directory, DEBUGINFOD_URLS: '' },
      stdio: 'ignore',
    });
    const url = `http://127.0.0.1:${port}`;
    env = { DEBUGINFOD_URLS: url, CACHE_DIRECTORY: path('cache') };
    await vi.waitFor(
      async () => expect((await fetch(`${url}/buildid/${buildId}/debuginfo`)).status).toBe(200),
      { timeout: 60_000, interval: 200 },
    );
  }, 90_000);
  afterAll(() => {
    server?.kill('SIGKILL');
    rmSync(directory, { recursive: true });
  });

  function showSymbol(extra: string[], more: Record<string, string> = {}) {
    const args = ['show', 'symbol', '--json', ...extra, path('program'), `${work}`];
    const result = spawnSync(EVERYFRAME, args, {
      encoding: 'utf8',
      env: { ...process.env, ...env, ...more },
    });
    const { frames } = JSON.parse(result.stdout || '{}') as { frames?: { function: string; line: number }[] };
    return { ...result, names: frames?.map((frame) => `${frame.function}:${frame.line}`) };
  }

  test('show symbol asks it only with --debuginfod, and once', () => {
    expect(showSymbol([]).names).toEqual([]);
    expect(() => readdirSync(path('cache'))).toThrow('ENOENT');
    expect(showSymbol(['--debuginfod']).names).toEqual(['twice:2', 'work:5']);
    const dead = { DEBUGINFOD_URLS: 'http://127.0.0.1:1' };
    expect(showSymbol(['--debuginfod'], dead).names).toEqual(['twice:2', 'work:5']);
    rmSync(path('cache'), { recursive: true });
    const failed = showSymbol(['--debuginfod'], dead);
    expect(failed.names).toEqual([]);
    expect(failed.stderr).toMatch(/http:\/\/127\.0\.0\.1:1.*\n.*no server gave the debug information/);
  });

  test('without servers the flag is refused, with what to do', () => {
    const { status, stderr } = showSymbol(['--debuginfod'], { DEBUGINFOD_URLS: '' });
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/set DEBUGINFOD_URLS/);
  });

  test('the agent answers at once, and better when the file is there', async () => {
    const copy = path('agent-program');
    copyFileSync(path('program'), copy);
    const stats = statSync(copy, { bigint: true });
    const key = toFileKey('00000000000000aa');
    let improved = (): void => {};
    const better = new Promise<void>((resolve) => {
      improved = resolve;
    });
    const settings = debuginfodFromEnvironment({ ...env, CACHE_DIRECTORY: path('agent-cache') });
    const debuginfod = new Debuginfod(settings);
    const workers = createFileWorkers();
    const executables = new Executables({
      workers,
      tables: {
        announce: async () => {},
        install: async () => {},
        markNoTable: () => {},
        markMemory: () => {},
        forget: () => {},
      },
      debuginfod,
      onBetterNames: (which) => which === key && improved(),
    });
    executables.onFile({
      key,
      pid: toPid(process.pid),
      inode: stats.ino,
      size: stats.size,
      ctimeNs: stats.ctimeNs,
      device: kernelDevice(stats.dev),
      generation: 0,
      vmaStart: 0x1000n,
      vmaEnd: 0x2000n,
      vmaOffset: 0n,
      path: copy,
    });
    const names = async () =>
      (await executables.resolve(key, [work]))[0]!.frames.map((frame) => frame.function);
    try {
      await vi.waitFor(() => expect(executables.get(key)?.state).toBe('ready'), 30_000);
      expect(await names()).toEqual([]);
      await better;
      expect(await names()).toEqual(['twice', 'work']);
      expect(debuginfod.stats).toMatchObject({ asked: 1, fetched: 1, failed: 0 });
    } finally {
      await executables.stop();
      await workers.stop();
    }
  });
});
