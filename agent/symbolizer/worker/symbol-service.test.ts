import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { parseElf } from '../../../common/elf/elf.ts';
import { placeOf } from '../../files/debug-files.ts';
import { DIRECT, useFileOpener } from '../../files/file-opener.ts';
import { OWN_VIEW } from '../../processes/root-views.ts';
import { AnswerCache } from '../cache/answer-cache.ts';
import { TableStore } from '../cache/kept-tables.ts';
import { findScratchRoom } from '../cache/scratch-file.ts';
import { openSymbols } from './open-symbols.ts';
import { SymbolService } from './symbol-service.ts';

const directory = mkdtempSync(join(tmpdir(), 'symbol-service-'));
const path = (name: string): string => join(directory, name);
let addresses = new Float64Array(0);

beforeAll(() => {
  const names = Array.from({ length: 300 }, (_, i) => `f${i}`);
  writeFileSync(
    path('a.c'),
    `${names.map((name, i) => `int ${name}(int x) { return x * ${i + 3}; }`).join('\n')}\nint main(void) { return 0; }\n`,
  );
  execFileSync('gcc', ['-O1', '-g', '-Wl,--build-id', '-o', 'program', 'a.c'], { cwd: directory });
  const listed = execFileSync('nm', ['program'], { cwd: directory, encoding: 'latin1' });
  addresses = Float64Array.from(listed.matchAll(/^([0-9a-f]+) T f\d+$/gm), (match) =>
    Number(`0x${match[1]}`),
  );
});
afterAll(() => rmSync(directory, { recursive: true }));

const askerOf = (name: string) => ({ key: name, fileId: name, view: OWN_VIEW, root: undefined });

async function ask(service: SymbolService, name: string, fetched?: Record<string, string>): Promise<number> {
  const fd = openSync(path(name), 'r');
  try {
    const answer = await service.resolve({ ...askerOf(name), fd, path: path(name), addresses, fetched });
    return answer.kind === 'names' ? answer.names.filter(({ frames }) => frames[0]?.line).length : -1;
  } finally {
    closeSync(fd);
  }
}

/** Bytes of the program's tables when it is opened, and when all is asked for. */
async function sizes(): Promise<{ opened: number; grown: number }> {
  const elf = parseElf(bufferSource(readFileSync(path('program'))));
  const symbols = await openSymbols(elf, placeOf(path('program')));
  const opened = symbols.byteLength;
  for (const address of addresses) symbols.lookup(address);
  const grown = symbols.byteLength;
  symbols.close();
  return { opened, grown };
}

/** How many files of the test are open. */
const open = (): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(directory);
    } catch {
      return false;
    }
  }).length;

test('files whose tables grew beyond the room are closed, and opened again when they are asked for', async () => {
  for (let i = 0; i < 6; i++) copyFileSync(path('program'), path(`copy${i}`));
  const { opened, grown } = await sizes();
  expect(grown).toBeGreaterThan(3 * opened);
  // room for six as they are opened, and for two as they get
  const service = new SymbolService('full', { maxBytes: Math.floor(2.5 * grown) });
  const few = { addresses: new Float64Array(0), path: path('program') };
  for (let i = 0; i < 6; i++) {
    const fd = openSync(path(`copy${i}`), 'r');
    await service.resolve({ ...few, ...askerOf(`copy${i}`), fd });
    closeSync(fd);
  }
  expect(open()).toBe(6);
  for (let i = 0; i < 6; i++) expect(await ask(service, `copy${i}`)).toBe(300);
  expect(open()).toBe(2);
  expect(await ask(service, 'copy0')).toBe(300);
  expect(open()).toBe(2);
});

test('64 files stay open at a time, those that were asked for last', async () => {
  const before = open();
  const service = new SymbolService();
  const fd = openSync(path('program'), 'r');
  const few = { addresses: addresses.slice(0, 1), path: path('program') };
  const resolve = (i: number, fd?: number) =>
    service.resolve({ ...few, ...askerOf(`file ${i}`), ...(fd !== undefined && { fd }) });
  for (let i = 0; i < 80; i++) expect((await resolve(i, fd)).kind).toBe('names');
  closeSync(fd);
  expect(open() - before).toBe(64);
  expect((await resolve(79)).kind).toBe('names');
  expect((await resolve(15)).kind).toBe('need-file');
});

test('a file is opened anew with debug information that was fetched for it, once', async () => {
  const before = open();
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: directory, encoding: 'latin1' });
  run('objcopy', '--only-keep-debug', 'program', 'fetched');
  run('strip', '--strip-all', '-o', 'bare', 'program');
  const buildId = /Build ID: ([0-9a-f]+)/.exec(run('readelf', '-n', 'bare'))![1]!;
  const service = new SymbolService();
  expect(await ask(service, 'bare')).toBe(0);
  expect(open()).toBe(before + 1);
  const fetched = { [buildId]: path('fetched') };
  for (let i = 0; i < 3; i++) expect(await ask(service, 'bare', fetched)).toBe(300);
  expect(open()).toBe(before + 2);
  // without the file what is there answers
  const answer = await service.resolve({
    ...askerOf('bare'),
    path: path('bare'),
    addresses,
    fetched: { ...fetched, ff: '/x' },
  });
  expect(answer.kind).toBe('names');
});

test('code without a symbol lies in the function that call frame information has there, in later runs too', async () => {
  execFileSync('strip', ['-o', 'stripped', 'program'], { cwd: directory });
  const inside = Float64Array.from([addresses[3]!, addresses[3]! + 1, addresses[7]!]);
  const places = inside.map((_, i) => addresses[i < 2 ? 3 : 7]!);
  for (let run = 0; run < 2; run++) {
    const service = new SymbolService('full', { cache: new AnswerCache(path('kept')) });
    const fd = openSync(path('stripped'), 'r');
    const request = { ...askerOf('stripped'), fd, path: path('stripped'), addresses: inside };
    const answer = await service.resolve({ ...request, fileId: 'a1'.repeat(16) });
    closeSync(fd);
    service.close();
    if (answer.kind !== 'names') throw new Error(answer.kind);
    expect(answer.cached).toBe(run * inside.length);
    expect(answer.names.map(({ frames }) => frames)).toEqual([[], [], []]);
    expect(answer.names.map(({ functionStart }) => functionStart)).toEqual([...places]);
    expect(answer.names.every(({ start, end }, i) => start <= inside[i]! && inside[i]! < end)).toBe(true);
  }
});

test('a copy that can not be read is closed', async () => {
  const before = open();
  // can be written to, and not read
  useFileOpener({ ...DIRECT, openScratch: () => openSync(path('scratch'), 'w') });
  const service = new SymbolService('full', { room: { directory, left: 1 << 30 } });
  const fd = openSync(path('program'), 'r');
  try {
    const request = { ...askerOf('copy'), fd, path: path('program'), addresses, isCopy: true };
    await expect(service.resolve(request)).rejects.toThrow('EBADF');
  } finally {
    closeSync(fd);
    useFileOpener(DIRECT);
  }
  expect(open()).toBe(before);
});

test('a service that is closed leaves on disk whatever it found', async () => {
  const cache = new AnswerCache(path('left'));
  const few = addresses.slice(0, 2);
  const request = async (service: SymbolService) => {
    const fd = openSync(path('program'), 'r');
    const answer = await service.resolve({
      ...askerOf('program'),
      fd,
      path: path('program'),
      addresses: few,
    });
    closeSync(fd);
    return answer;
  };
  const service = new SymbolService('full', { cache });
  expect(await request(service)).toMatchObject({ cached: 0 });
  expect(await request(new SymbolService('full', { cache }))).toMatchObject({ cached: 0 });
  service.close();
  expect(await request(new SymbolService('full', { cache }))).toMatchObject({ cached: 2 });
});

test('what was found before is not looked for again, and stands in its place among what is new', async () => {
  const cache = new AnswerCache(path('cache'));
  const request = async (addresses: Float64Array, options = {}) => {
    const fd = openSync(path('program'), 'r');
    const service = new SymbolService('full', options);
    const answer = await service.resolve({ ...askerOf('program'), fd, path: path('program'), addresses });
    closeSync(fd);
    if (answer.kind !== 'names') throw new Error(answer.kind);
    return answer;
  };
  const known = addresses.filter((_, i) => i % 3 === 1);
  const { names: expected } = await request(addresses);
  expect(new Set(expected.map(({ frames }) => frames[0]?.function)).size).toBe(300);
  expect(await request(known, { cache })).toMatchObject({ cached: 0 });
  expect(await request(addresses, { cache })).toMatchObject({
    cached: known.length,
    names: expected.map(({ frames }) => ({ frames })),
  });
});

test('tables of an earlier run answer as they did, those of debug information only while that is the same', async () => {
  const run = (command: string, ...args: string[]) => execFileSync(command, args, { cwd: directory });
  run('objcopy', '--only-keep-debug', 'program', 'bare-2.debug');
  run('strip', '--strip-all', '-o', 'bare-2', 'program');
  run('objcopy', '--add-gnu-debuglink=bare-2.debug', 'bare-2');
  /** How many of the tables that were asked for were there. */
  const request = async (): Promise<{ names: unknown; asked: number; found: number }> => {
    const tables = new TableStore(path('tables'));
    const counts = { asked: 0, found: 0 };
    const openKept = tables.open.bind(tables);
    tables.open = (key) => {
      const kept = openKept(key);
      const find = kept.find.bind(kept);
      kept.find = (name) => {
        const part = find(name);
        counts.asked++;
        if (part) counts.found++;
        return part;
      };
      return kept;
    };
    const service = new SymbolService('full', { room: findScratchRoom([]), tables });
    const fd = openSync(path('bare-2'), 'r');
    const root = openSync('/', 'r');
    const answer = await service.resolve({ ...askerOf('bare'), fd, root, path: path('bare-2'), addresses });
    for (const descriptor of [fd, root]) closeSync(descriptor);
    const answered = { ...counts };
    service.close();
    return { names: answer.kind === 'names' && answer.names, ...answered };
  };
  const first = await request();
  // a unit and the symbol table
  expect(first).toMatchObject({ asked: 2, found: 0 });
  expect(first.names).toHaveLength(300);
  expect(first.names).toContainEqual(
    expect.objectContaining({ frames: [expect.objectContaining({ function: 'f7', line: 8 })] }),
  );
  expect(await request()).toEqual({ ...first, found: 2 });
  copyFileSync(path('bare-2.debug'), path('other.debug'));
  renameSync(path('other.debug'), path('bare-2.debug'));
  expect(await request()).toEqual(first);
});

test('a file with the edges and the size of another lends it no names', async () => {
  const bytes = readFileSync(path('program'));
  const listed = execFileSync('nm', ['program'], { cwd: directory, encoding: 'latin1' });
  const f7 = Number(`0x${/^([0-9a-f]+) T f7$/m.exec(listed)![1]}`);
  const at = bytes.lastIndexOf('\0f7\0');
  expect(at).toBeGreaterThan(4096);
  bytes.write('g7', at + 1);
  writeFileSync(path('crafted'), bytes);
  const service = new SymbolService('names');
  const nameOf = async (name: string): Promise<string | undefined> => {
    const fd = openSync(path(name), 'r');
    const one = Float64Array.of(f7);
    const from = { key: name, fileId: 'same', view: OWN_VIEW, root: undefined };
    const answer = await service.resolve({ ...from, fd, path: path('program'), addresses: one });
    closeSync(fd);
    return answer.kind === 'names' ? answer.names[0]!.frames[0]?.function : answer.kind;
  };
  expect(await nameOf('crafted')).toBe('g7');
  expect(await nameOf('program')).toBe('f7');
});

test('what one root has of debug information names nothing in another, and is shared where both have the same', async () => {
  const run = (command: string, ...args: string[]) => execFileSync(command, args, { cwd: directory });
  for (const name of ['r1', 'r2', 'r3']) mkdirSync(path(name));
  run('objcopy', '--only-keep-debug', 'program', 'r1/program.debug');
  run('strip', '--strip-all', '-o', 'r1/program', 'program');
  run('objcopy', '--add-gnu-debuglink=r1/program.debug', 'r1/program');
  for (const name of ['program', 'program.debug']) linkSync(path(`r1/${name}`), path(`r3/${name}`));
  const service = new SymbolService('full', { cache: new AnswerCache(path('by-root')) });
  const before = open();
  const linesIn = async (view: number, name: string): Promise<number> => {
    const [fd, root] = [openSync(path('r1/program'), 'r'), openSync(path(name), 'r')];
    const from = { key: 'one', fileId: 'one', view, root };
    const answer = await service.resolve({ ...from, fd, path: '/program', addresses });
    for (const descriptor of [fd, root]) closeSync(descriptor);
    return answer.kind === 'names' ? answer.names.filter(({ frames }) => frames[0]?.line).length : -1;
  };
  expect(await linesIn(1, 'r1')).toBe(300);
  expect(await linesIn(2, 'r2')).toBe(0);
  const opened = open();
  expect(await linesIn(3, 'r3')).toBe(300);
  expect(open()).toBe(opened);
  expect(await linesIn(1, 'r1')).toBe(300);
  expect(await linesIn(2, 'r2')).toBe(0);
  service.close();
  expect(open()).toBe(before);
});
