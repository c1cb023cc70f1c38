/** A program without a build ID in a directory that is its root: only the CRC of its debug file says that it is the one. */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { openSymbols } from '../symbolizer/worker/open-symbols.ts';
import { RootDirectory } from './root-directory.ts';

const base = mkdtempSync(join(tmpdir(), 'everyframe-link-'));
const inBase = (path: string): string => join(base, path);
const inRoot = (path: string): string => join(base, 'root', path);
const BESIDE = 'opt/app/program.debug';
const PLACES = [BESIDE, 'opt/app/.debug/program.debug', 'usr/lib/debug/opt/app/program.debug'];
let helper = 0;

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: base, encoding: 'latin1' });

function put(file: string, path: string): void {
  mkdirSync(dirname(inRoot(path)), { recursive: true });
  copyFileSync(inBase(file), inRoot(path));
}

beforeAll(() => {
  writeFileSync(
    inBase('a.c'),
    'static __attribute__((noinline)) int helper(int x) { return x * 3; }\nint main(int c, char **v) { return helper(c); }\n',
  );
  run('gcc', '-O1', '-g', '-Wl,--build-id=none', '-o', 'full', 'a.c');
  helper = Number.parseInt(/^([0-9a-f]+) t helper$/m.exec(run('nm', 'full'))![1]!, 16);
  run('objcopy', '--only-keep-debug', 'full', 'program.debug');
  run('objcopy', '--strip-all', '--add-gnu-debuglink=program.debug', 'full', 'program');
  writeFileSync(inBase('b.c'), readFileSync(inBase('a.c'), 'latin1').replaceAll('helper', 'wrong1'));
  run('gcc', '-O1', '-g', '-Wl,--build-id=none', '-o', 'other', 'b.c');
  run('objcopy', '--only-keep-debug', 'other', 'other.debug');
});
beforeEach(() => put('program', 'opt/app/program'));
afterEach(() => rmSync(inRoot(''), { recursive: true }));
afterAll(() => rmSync(base, { recursive: true }));

async function nameOfHelper(): Promise<string | undefined> {
  const root = new RootDirectory(inRoot(''));
  const elf = parseElf(bufferSource(readFileSync(inRoot('opt/app/program'))));
  const symbols = await openSymbols(elf, {
    path: '/opt/app/program',
    root,
    owner: { uid: 0n, gid: 0n, mode: 0o755n },
  });
  try {
    return symbols.lookup(helper).at(-1)?.function;
  } finally {
    symbols.close();
    root.close();
  }
}

test.each(PLACES)('its debug link leads to %s', async (place) => {
  put('program.debug', place);
  expect(await nameOfHelper()).toBe('helper');
});

test("another program's file is passed over, whatever it is called", async () => {
  put('other.debug', BESIDE);
  expect(await nameOfHelper()).toBeUndefined();
  put('program.debug', PLACES[2]!);
  expect(await nameOfHelper()).toBe('helper');
});

test('a file that was changed or cut is not believed, nor one that is too large to check', async () => {
  put('program.debug', BESIDE);
  const bytes = readFileSync(inRoot(BESIDE));
  bytes[bytes.length - 1]! ^= 1;
  // under a new name, as every change makes another identity
  writeFileSync(inRoot('changed'), bytes);
  renameSync(inRoot('changed'), inRoot(BESIDE));
  expect(await nameOfHelper()).toBeUndefined();
  truncateSync(inRoot(BESIDE), 1000);
  expect(await nameOfHelper()).toBeUndefined();
  truncateSync(inRoot(BESIDE), 2 ** 40);
  expect(await nameOfHelper()).toBeUndefined();
});

test('a link that has the name of the program itself leads further', async () => {
  copyFileSync(inBase('program.debug'), inBase('named'));
  run('objcopy', '--strip-all', '--remove-section=.gnu_debuglink', 'full', 'linked');
  run('objcopy', '--add-gnu-debuglink=named', 'linked');
  put('linked', 'opt/app/program');
  put('linked', 'opt/app/named');
  put('named', 'opt/app/.debug/named');
  expect(await nameOfHelper()).toBe('helper');
});
