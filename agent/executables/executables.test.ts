import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type FileKey, toFileKey, toPid } from '../../common/base/brand.ts';
import { buildElf } from '../../common/elf/build-elf.ts';
import { SHT_DYNSYM } from '../../common/elf/elf.ts';
import type { DetectedRuntime } from '../interpreters/contract.ts';
import { parseStat } from '../processes/proc-files.ts';
import { OWN_VIEW, RootViews } from '../processes/root-views.ts';
import type { FileRecord } from '../records/records.ts';
import type { TableImage } from '../tracer/tables.ts';
import { createFileWorkers, type FileWorkerOptions } from '../workers/file-workers.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { Executables, type ExecutablesOptions } from './executables.ts';
import { kernelDevice } from './files/open-file.ts';
import { VDSO_KEY } from './known-executables.ts';

const startOf = (pid: number): bigint =>
  parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))!.startTicks * 10_000_000n;

/** What BPF's maps would hold. */
class Sink {
  readonly installed = new Map<FileKey, TableImage>();
  readonly without = new Set<FileKey>();
  readonly memory = new Set<FileKey>();
  readonly forgotten: FileKey[] = [];
  full = false;
  broken = false;
  async install(key: FileKey, table: TableImage): Promise<void> {
    if (this.full) throw new Error('no room');
    this.installed.set(key, table);
  }
  readonly announced: { key: FileKey; runtime: string; isInstalled: boolean }[] = [];
  async announce(key: FileKey, { runtime }: DetectedRuntime): Promise<void> {
    this.announced.push({ key, runtime, isInstalled: this.installed.has(key) });
  }
  markNoTable(key: FileKey): void {
    if (this.broken) throw new Error('cannot write a BPF map');
    this.without.add(key);
  }
  markMemory(key: FileKey): void {
    this.memory.add(key);
  }
  forget(key: FileKey): void {
    this.forgotten.push(key);
  }
}

const directory = mkdtempSync(join(tmpdir(), 'executables-'));
const program = join(directory, 'program');
const all: { executables: Executables; workers: WorkerPool }[] = [];
let symbols = new Map<string, number>();

beforeAll(() => {
  const source =
    'int helper(int x) { return x + 1; }\nint main(int argc, char **argv) { return helper(argc); }';
  execFileSync('gcc', ['-O0', '-Wl,--build-id', '-o', program, '-x', 'c', '-'], { input: source });
  const listed = execFileSync('nm', [program], { encoding: 'latin1' });
  symbols = new Map(
    [...listed.matchAll(/^([0-9a-f]{16}) T (\w+)$/gm)].map((m) => [m[2]!, Number(`0x${m[1]}`)]),
  );
  return () => rmSync(directory, { recursive: true });
});
afterEach(async () => {
  for (const { executables, workers } of all.splice(0)) {
    await executables.stop();
    await workers.stop();
  }
});

function create(options: Partial<ExecutablesOptions> = {}, data?: FileWorkerOptions) {
  const tables = new Sink();
  const workers = createFileWorkers(data);
  const executables = new Executables({ tables, workers, retryMs: 1, ...options });
  all.push({ executables, workers });
  return { tables, executables };
}

let keys = 0;
function recordOf(path: string): FileRecord {
  const stats = statSync(path, { bigint: true });
  return {
    key: toFileKey((++keys + 0xff).toString(16).padStart(16, '0')),
    pid: toPid(0x3fff_ffff),
    inode: stats.ino,
    size: stats.size,
    ctimeNs: stats.ctimeNs,
    device: kernelDevice(stats.dev),
    generation: 0,
    vmaStart: 0x1000n,
    vmaEnd: 0x2000n,
    vmaOffset: 0n,
    path,
  };
}

const copy = (name: string, from = program): string => {
  copyFileSync(from, join(directory, name));
  return join(directory, name);
};
const settled = (executables: Executables, key: FileKey) =>
  vi.waitFor(() => {
    expect(['opening', 'reading', undefined]).not.toContain(executables.get(key)?.state);
    return executables.get(key)!;
  }, 60_000);
/** V8's variable with a part of its version. */
const versionOf = (part: string): string => `_ZN2v88internal7Version6${part.replace(' ', '_E ')}`;
const openFiles = (path: string) =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(path);
    } catch {
      return false;
    }
  });

/** The outermost function at each address. */
async function resolveNames(
  executables: Executables,
  ...request: Parameters<Executables['resolve']>
): Promise<(string | undefined)[]> {
  return (await executables.resolve(...request)).map(({ frames }) => frames.at(-1)?.function);
}

describe('a program', () => {
  test('gets its table, its IDs, addresses and names', async () => {
    const { tables, executables } = create();
    const record = recordOf(program);
    executables.onFile(record);
    expect(executables.locate(record.key, 0x1139)).toBeUndefined();
    expect(executables.nameOf(record.key)).toBe(program);
    const executable = await settled(executables, record.key);
    expect(executable).toMatchObject({ state: 'ready', name: 'program', reason: '' });
    expect(tables.installed.get(record.key)!.pageCount).toBeGreaterThan(0);
    const notes = execFileSync('readelf', ['-n', program], { encoding: 'latin1' });
    expect(notes).toContain(executable.gnuBuildId);
    const main = symbols.get('main')!;
    const text = executable.segments.find((s) => main >= s.vaddr && main < s.vaddr + s.filesz)!;
    const place = executables.locate(record.key, main - text.vaddr + text.offset)!;
    expect(place.address).toBe(main);
    expect(place.mapping).toMatchObject({
      filename: program,
      fileId: executable.fileId,
      fileOffset: BigInt(text.offset),
    });
    const addresses = [main, symbols.get('helper')! + 1, 0x10, main + 1];
    expect(await resolveNames(executables, record.key, addresses)).toEqual([
      'main',
      'helper',
      undefined,
      'main',
    ]);
    expect(executables.names.stats).toMatchObject({ asked: 4, named: 3 });
  });

  test('that was compiled, run and deleted has its names all the same', async () => {
    const { executables } = create();
    const path = copy('deleted');
    const record = recordOf(path);
    executables.onFile(record);
    await settled(executables, record.key);
    unlinkSync(path);
    expect(await resolveNames(executables, record.key, [symbols.get('main')!])).toEqual(['main']);
  });

  test('whose table does not fit goes without', async () => {
    const { tables, executables } = create();
    tables.full = true;
    const record = recordOf(program);
    executables.onFile(record);
    expect(await settled(executables, record.key)).toMatchObject({ state: 'no-table', reason: 'no room' });
    expect(tables.without.has(record.key)).toBe(true);
    expect(await resolveNames(executables, record.key, [symbols.get('main')!])).toEqual(['main']);
  });

  test('that can not even be marked costs no other file its table', async () => {
    const { tables, executables } = create();
    const broken = recordOf(copy('broken'));
    Object.assign(tables, { full: true, broken: true });
    executables.onFile(broken);
    expect(await settled(executables, broken.key)).toMatchObject({
      state: 'failed',
      reason: 'cannot write a BPF map',
    });
    Object.assign(tables, { full: false, broken: false });
    const record = recordOf(program);
    executables.onFile(record);
    expect(await settled(executables, record.key)).toMatchObject({ state: 'ready' });
  });

  test('whose table is evicted at once is not made again and again', async () => {
    const { tables, executables } = create();
    const record = recordOf(program);
    executables.onFile(record);
    await settled(executables, record.key);
    executables.onFile(record);
    expect(executables.get(record.key)).toMatchObject({ state: 'failed' });
    expect(executables.stats.failures.thrashing).toBe(1);
    expect(executables.stats.opened).toBe(1);
    expect(executables.locate(record.key, 0x1000)).toBeDefined();
    await vi.waitFor(() => expect(tables.forgotten).toEqual([record.key]), 10_000);
  });

  test('is there until its path leads to another file', async () => {
    const { executables } = create();
    const path = copy('replaced');
    const record = recordOf(path);
    expect(await executables.isThere(record.key)).toBe(false);
    executables.onFile(record);
    await settled(executables, record.key);
    expect(await executables.isThere(record.key)).toBe(true);
    renameSync(copy('new'), path);
    expect(await executables.isThere(record.key)).toBe(false);
    rmSync(path);
    expect(await executables.isThere(record.key)).toBe(false);
  });
});

describe('names that are kept on disk', () => {
  const source =
    'static inline __attribute__((always_inline)) int twice(int x) { volatile int y = x; return y + y; }\n' +
    '__attribute__((noinline)) int work(int x) { return twice(x); }\nint main(int c, char **v) { return work(c); }\n';

  /** What an agent that starts now says, and how much of it is from an earlier one. */
  async function ask(symbolCache: string, path: string, addresses: number[]) {
    const { executables } = create({}, { cache: symbolCache });
    const record = recordOf(path);
    executables.onFile(record);
    await settled(executables, record.key);
    const names = (await executables.resolve(record.key, addresses)).map(({ frames }) =>
      frames.map((frame) => `${frame.function}:${frame.line}`).join(' '),
    );
    const { fromCache, workerFailed } = executables.names.stats;
    expect(workerFailed).toBe(0);
    await executables.stop();
    return { names, fromCache };
  }

  test('answer later runs, until one of the files that they stand on is another', async () => {
    const base = mkdtempSync(join(tmpdir(), 'executables-cache-'));
    const [path, debug, cache] = ['program', 'program.debug', 'cache'].map((name) => join(base, name));
    const run = (command: string, ...args: string[]) =>
      execFileSync(command, args, { cwd: base, encoding: 'latin1' });
    writeFileSync(join(base, 'a.c'), source);
    run('gcc', '-O1', '-g', '-Wl,--build-id', '-o', 'full', 'a.c');
    const work = Number(`0x${/^([0-9a-f]+) T work$/m.exec(run('nm', 'full'))![1]}`);
    run('objcopy', '--only-keep-debug', 'full', 'program.debug');
    run('objcopy', '--strip-all', '--add-gnu-debuglink=program.debug', 'full', 'program');
    const addresses = Array.from({ length: 20 }, (_, i) => work - 4 + i);
    const first = await ask(cache!, path!, addresses);
    expect(first.fromCache).toBe(0);
    expect(first.names).toContain('twice:1 work:2');
    const second = await ask(cache!, path!, addresses);
    expect(second).toEqual({ names: first.names, fromCache: 20 });
    expect((await ask(cache!, path!, [...addresses, work + 1000])).names.slice(0, 20)).toEqual(first.names);
    unlinkSync(debug!);
    const without = await ask(cache!, path!, addresses);
    expect(without.fromCache).toBe(0);
    expect(without.names).not.toContain('twice:1 work:2');
    run('objcopy', '--only-keep-debug', 'full', 'program.debug');
    expect(await ask(cache!, path!, addresses)).toEqual(first);
    // a copy has the same file ID, and may stand on other files
    copyFileSync(path!, join(base, 'copy'));
    expect((await ask(cache!, join(base, 'copy'), addresses)).fromCache).toBe(0);
    rmSync(base, { recursive: true });
  });
});

if (process.getuid?.() !== 0) console.log('skipped: a program in a container (needs root)');

describe.skipIf(process.getuid?.() !== 0)('a program in a container', () => {
  test('has the names that lie in its own root, also when it has ended', async () => {
    const root = mkdtempSync(join(tmpdir(), 'executables-root-'));
    const inRoot = (path: string) => join(root, path);
    mkdirSync(inRoot('usr/lib/debug/.build-id'), { recursive: true });
    const source =
      'int pause(void);\nint deep(void) { return pause(); }\nint main(void) { for (;;) deep(); }';
    execFileSync('gcc', ['-static', '-Wl,--build-id', '-o', inRoot('full'), '-x', 'c', '-'], {
      input: source,
    });
    const deep = /^([0-9a-f]+) T deep$/m.exec(
      execFileSync('nm', [inRoot('full')], { encoding: 'latin1' }),
    )![1]!;
    execFileSync('objcopy', ['--only-keep-debug', inRoot('full'), inRoot('program.debug')]);
    execFileSync('objcopy', ['--strip-all', '--add-gnu-debuglink=program.debug', 'full', 'program'], {
      cwd: root,
    });
    const child = spawn('chroot', [root, '/program']);
    try {
      await vi.waitFor(
        () => expect(readFileSync(`/proc/${child.pid}/cmdline`, 'latin1')).toMatch(/^\/program/),
        10_000,
      );
      const startBoottimeNs = startOf(child.pid!);
      const views = new RootViews();
      const { executables } = create({ views });
      const record = { ...recordOf(inRoot('program')), pid: toPid(child.pid!), path: '/program' };
      executables.onFile(record);
      expect(await settled(executables, record.key)).toMatchObject({ state: 'ready' });
      child.kill('SIGKILL');
      await once(child, 'exit');
      const view = views.of({ pid: toPid(child.pid!), startBoottimeNs });
      expect(view).not.toBe(OWN_VIEW);
      const addresses = [Number(`0x${deep}`)];
      // whoever else has that file mapped does not see the other one
      expect(await resolveNames(executables, record.key, addresses)).toEqual([undefined]);
      expect(await resolveNames(executables, record.key, addresses, view)).toEqual(['deep']);
      expect(await resolveNames(executables, record.key, addresses)).toEqual([undefined]);
      expect(executables.names.stats).toMatchObject({ debugFilesOpened: 1, debugFilesRefused: 0 });
    } finally {
      child.kill('SIGKILL');
      rmSync(root, { recursive: true });
    }
  });
});

describe('bad files', () => {
  test('no ELF: frames keep file and offset', async () => {
    const { tables, executables } = create();
    const path = join(directory, 'text.jar');
    writeFileSync(path, 'x'.repeat(10_000));
    const record = recordOf(path);
    executables.onFile(record);
    expect(await settled(executables, record.key)).toMatchObject({ state: 'not-elf' });
    expect(tables.without.has(record.key)).toBe(true);
    expect(executables.locate(record.key, 0x123)).toMatchObject({
      address: 0x123,
      mapping: { filename: path },
    });
    expect(await resolveNames(executables, record.key, [0x123])).toEqual([undefined]);
  });

  test('no ELF and in no folder: shared memory, whose code no file backs', async () => {
    const path = join(directory, 'memory');
    writeFileSync(path, 'x'.repeat(4096));
    const record = { ...recordOf(path), path: '' };
    const proc = join(directory, 'proc');
    const maps = join(proc, `${record.pid}/map_files`);
    mkdirSync(maps, { recursive: true });
    symlinkSync(path, join(maps, `${record.vmaStart.toString(16)}-${record.vmaEnd.toString(16)}`));
    const { tables, executables } = create({ proc });
    executables.onFile(record);
    expect(await settled(executables, record.key)).toMatchObject({ state: 'not-elf' });
    expect([...tables.memory]).toEqual([record.key]);
    expect(tables.without.size).toBe(0);
  });

  test('empty', async () => {
    const { executables } = create();
    const path = join(directory, 'empty');
    writeFileSync(path, '');
    const record = recordOf(path);
    executables.onFile(record);
    expect((await settled(executables, record.key)).state).toBe('not-elf');
  });

  test('truncated after it was opened: a typed end, no crash', async () => {
    const { executables } = create();
    const path = copy('truncated');
    const record = recordOf(path);
    executables.onFile(record);
    await settled(executables, record.key);
    truncateSync(path, 100);
    expect(await resolveNames(executables, record.key, [symbols.get('main')!])).toEqual([undefined]);
    expect(executables.names.stats.unreadable).toBe(1);
    const again = recordOf(program);
    executables.onFile(again);
    await settled(executables, again.key);
    expect(await resolveNames(executables, again.key, [symbols.get('main')!])).toEqual(['main']);
  });

  test('gone: BPF shall report it again, and then it is found', async () => {
    const { tables, executables } = create();
    const path = copy('late');
    const record = recordOf(path);
    executables.onFile({ ...record, path: `${path}-elsewhere` });
    expect(await settled(executables, record.key)).toMatchObject({
      state: 'failed',
      reason: expect.stringContaining('elsewhere'),
    });
    expect(executables.stats.failures.gone).toBe(1);
    await vi.waitFor(() => expect(tables.forgotten).toEqual([record.key]), 10_000);
    executables.onFile(record);
    expect((await settled(executables, record.key)).state).toBe('ready');
  });
});

describe('bounds', () => {
  test('2,000 files at once that are all gone', async () => {
    const { executables } = create({ maxExecutables: 100 });
    const record = recordOf(program);
    for (let i = 0; i < 2000; i++) {
      executables.onFile({
        ...record,
        key: toFileKey(`dead${i.toString(16).padStart(12, '0')}`),
        path: '/none',
      });
    }
    const { failures } = executables.stats;
    await vi.waitFor(() => expect(failures.gone + failures.overloaded).toBe(2000), 15_000);
    expect(failures.overloaded).toBeGreaterThan(0);
    expect(executables.count).toBe(100);
  });

  test('the least used executable leaves: BPF forgets it, its file is closed', async () => {
    const { tables, executables } = create({ maxExecutables: 2 });
    const paths = ['one', 'two', 'three'].map((name) => copy(name));
    const records = paths.map(recordOf);
    for (const record of records) {
      executables.onFile(record);
      await settled(executables, record.key);
    }
    expect(tables.forgotten).toEqual([records[0]!.key]);
    expect(executables.stats.evicted).toBe(1);
    await vi.waitFor(() => expect(openFiles(paths[0]!)).toEqual([]), 10_000);
    expect(openFiles(paths[2]!)).toHaveLength(1);
  });

  test('a language runtime is announced before its table is made, and is the same object afterwards', async () => {
    const { tables, executables } = create();
    const record = recordOf(process.execPath);
    executables.onFile(record);
    const announced = await vi.waitFor(() => {
      const { runtime } = executables.get(record.key)!;
      expect(runtime).toBeDefined();
      return runtime!;
    }, 60_000);
    const executable = await settled(executables, record.key);
    expect(tables.announced).toEqual([{ key: record.key, runtime: 'v8', isInstalled: false }]);
    expect(executable).toMatchObject({ state: 'ready' });
    expect(executable.runtime).toBe(announced);
    expect(executables.stats.runtimes).toBe(1);
  });

  test('files are looked at for a runtime before the table of any is made', async () => {
    const { tables, executables } = create();
    const records = [process.execPath, copy('node-other', process.execPath)].map(recordOf);
    // two files, as far as a machine goes that has both
    appendFileSync(records[1]!.path, 'other');
    const [first, second] = [records[0]!, recordOf(records[1]!.path)];
    executables.onFile(first);
    executables.onFile(second);
    await executables.runtimesKnown(60_000);
    // both are opened at once, and either may come first
    const isInstalled = new Map(tables.announced.map((announced) => [announced.key, announced.isInstalled]));
    expect(isInstalled).toEqual(
      new Map([
        [first.key, false],
        [second.key, false],
      ]),
    );
    await settled(executables, second.key);
    expect(tables.announced).toHaveLength(2);
  });

  test.each([
    [
      'V8 8.1.307: ',
      ['v8dbg_HeapObjectTag = 1', ...['major = 8', 'minor = 1', 'build = 307'].map(versionOf)].map(
        (text) => `const int ${text};`,
      ),
    ],
    [
      'PHP 8.2.99, with threads (ZTS): no executor_globals_offset',
      [
        'int execute_ex(void) { return 0; }',
        'void *tsrm_get_ls_cache(void) { return 0; }',
        'const char version[] = "X-Powered-By: PHP/8.2.99";',
      ],
    ],
  ])(
    'a runtime that can not be unwound is told with its reason, and costs nothing else: %s',
    async (reason, code) => {
      const refused = join(directory, `refused-${reason.slice(0, 2)}`);
      execFileSync('gcc', ['-rdynamic', '-o', refused, '-x', 'c', '-'], {
        input: [...code, 'int main() { return 0; }'].join('\n'),
      });
      const told: [problem: string, path: string][] = [];
      const { executables } = create({ onUnsupportedRuntime: (...what) => told.push(what) });
      const record = recordOf(refused);
      executables.onFile(record);
      expect(await settled(executables, record.key)).toMatchObject({ state: 'ready', runtime: undefined });
      expect(told).toEqual([[expect.stringContaining(reason), refused]]);
      expect(executables.stats).toMatchObject({ runtimes: 0, runtimesUnsupported: 1, installed: 1 });
    },
  );

  test('a damaged file is counted as one, and not among the runtimes that are not supported', async () => {
    const damaged = join(directory, 'damaged');
    const symbols = { name: '.dynsym', type: SHT_DYNSYM, link: 77, bytes: new Uint8Array(48) };
    writeFileSync(damaged, buildElf({ sections: [symbols] }));
    const told: string[] = [];
    const { executables } = create({ onUnsupportedRuntime: (problem) => told.push(problem) });
    const record = recordOf(damaged);
    executables.onFile(record);
    await settled(executables, record.key);
    expect(executables.stats).toMatchObject({ runtimesUnreadable: 1, runtimesUnsupported: 0 });
    expect(told).toEqual([]);
  });

  test('events about a file that is being read are one', async () => {
    const { executables } = create();
    const record = recordOf(program);
    for (let i = 0; i < 5; i++) executables.onFile(record);
    await settled(executables, record.key);
    expect(executables.stats).toMatchObject({ reported: 5, opened: 1 });
  });

  test('stopping in the middle closes every file', async () => {
    const { executables } = create();
    const paths = Array.from({ length: 20 }, (_, i) => copy(`stop-${i}`));
    for (const path of paths) executables.onFile(recordOf(path));
    await vi.waitFor(() => expect(executables.stats.opened).toBeGreaterThan(0), 10_000);
    await executables.stop();
    await vi.waitFor(() => expect(openFiles(join(directory, 'stop-'))).toEqual([]), 10_000);
  });
});

test.each([
  ['names', ['main']],
  ['off', [undefined]],
] as const)('symbols: %s', async (detail, expected) => {
  const { executables } = create({ symbols: detail }, { detail: 'names' });
  const record = recordOf(program);
  executables.onFile(record);
  await settled(executables, record.key);
  expect(await resolveNames(executables, record.key, [symbols.get('main')!])).toEqual(expected);
});

test('the vDSO', async () => {
  const { tables, executables } = create();
  expect(await executables.loadVdso()).toBe(true);
  expect(tables.installed.has(VDSO_KEY)).toBe(true);
  const place = executables.locate(VDSO_KEY, 0)!;
  expect(place.mapping.filename).toBe('[vdso]');
  const addresses = Array.from({ length: 4096 }, (_, i) => i);
  const names = new Set(await resolveNames(executables, VDSO_KEY, addresses));
  expect([...names].join()).toContain('clock_gettime');
});
