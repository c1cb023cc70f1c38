/** A program with split DWARF in a directory that is its root; what it names is made hostile in turn. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bufferSource, OutOfBounds } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import type { FileRequest, SymbolFrame } from '../../common/symbols/source.ts';
import { openSymbols } from '../symbolizer/worker/open-symbols.ts';
import { DebugFiles, type ElfPlace } from './debug-files.ts';
import { fdSource } from './fd-source.ts';
import { FilePool } from './file-pool.ts';
import { ownRoot, RootDirectory } from './root-directory.ts';

const SOURCE = `
static inline __attribute__((always_inline)) int twice(int x) { volatile int y = x; return y + y; }
__attribute__((noinline)) int NAME(int x) { return twice(x) + 1; }
`;
const base = mkdtempSync(join(tmpdir(), 'everyframe-root-'));
const inRoot = (path: string): string => join(base, 'root', path);
const DWO = inRoot('build/program-one.dwo');
/** An address where another function was inlined. */
let work = 0;
let root: RootDirectory;
/** Who owns the program: nobody that owns anything else here. */
const uid = 54_321n;
const owner = { uid, gid: uid, mode: 0o755n };

beforeAll(() => {
  mkdirSync(inRoot('build'), { recursive: true });
  writeFileSync(inRoot('build/one.c'), SOURCE.replace('NAME', 'work'));
  const units = Array.from({ length: 12 }, (_, i) => `unit${i}`);
  for (const name of units) writeFileSync(inRoot(`build/${name}.c`), SOURCE.replace('NAME', name));
  writeFileSync(
    inRoot('build/main.c'),
    `${units.map((name) => `int ${name}(int);`).join('')} int work(int);
     int main(int c, char **v) { return work(c)${units.map((name) => ` + ${name}(c)`).join('')}; }`,
  );
  const sources = ['main', 'one', ...units].map((name) => `${name}.c`);
  execFileSync(
    'gcc',
    ['-O1', '-g', '-gsplit-dwarf', `-fdebug-prefix-map=${inRoot('')}=/`, '-o', 'program', ...sources],
    {
      cwd: inRoot('build'),
    },
  );
  const listed = execFileSync('nm', ['program'], { cwd: inRoot('build'), encoding: 'latin1' });
  work = 4 + Number.parseInt(/^([0-9a-f]+) T work$/m.exec(listed)![1]!, 16);
});
beforeEach(() => {
  root = new RootDirectory(inRoot(''));
  copyFileSync(DWO, join(base, 'saved'));
});
afterEach(() => {
  root.close();
  rmSync(DWO, { recursive: true, force: true });
  copyFileSync(join(base, 'saved'), DWO);
  chmodSync(DWO, 0o644);
});
afterAll(() => rmSync(base, { recursive: true }));

const place = (): ElfPlace => ({ path: '/build/program', root, owner });

async function openProgram() {
  const fd = openSync(inRoot('build/program'), 'r');
  const symbols = await openSymbols(parseElf(fdSource(fd)), place());
  return { symbols, close: () => [symbols.close(), closeSync(fd)] };
}

interface Answer {
  names: string[];
  frames: SymbolFrame[];
  refused: number;
  bytes: number;
}

async function askFor(address: number): Promise<Answer> {
  const { symbols, close } = await openProgram();
  try {
    const frames = symbols.lookup(address);
    const { refused } = symbols.takeFileStats();
    return { frames, names: frames.map((frame) => frame.function), refused, bytes: symbols.byteLength };
  } finally {
    close();
  }
}

describe('split DWARF in the root of a process', () => {
  test('gives inlined functions and lines', async () => {
    const { frames, names, refused } = await askFor(work);
    expect(names).toEqual(['twice', 'work']);
    expect(frames[1]!.file).toMatch(/one\.c$/);
    expect(refused).toBe(0);
  });

  test('of more files than stay open', async () => {
    const listed = execFileSync('nm', [inRoot('build/program')], { encoding: 'latin1' });
    const units = [...listed.matchAll(/^([0-9a-f]+) T (unit\d+)$/gm)];
    expect(units).toHaveLength(12);
    const { symbols, close } = await openProgram();
    for (let pass = 0; pass < 2; pass++)
      for (const [, address, name] of units)
        expect(symbols.lookup(4 + Number.parseInt(address!, 16)).map((frame) => frame.function)).toEqual([
          'twice',
          name,
        ]);
    expect(openBelow(inRoot('')).length).toBeLessThanOrEqual(6);
    close();
    expect(openBelow(inRoot(''))).toHaveLength(1);
  });

  const fromTheTable = async (damage: () => void, refused = 0): Promise<void> => {
    rmSync(DWO);
    damage();
    const { names, frames, ...rest } = await askFor(work);
    // the line table stands in the program itself
    expect(names).toEqual(['work']);
    expect(frames[0]!.line).toBeGreaterThan(0);
    expect(rest.refused).toBe(refused);
    expect(rest.bytes).toBeLessThan(16 << 20);
  };

  test('that is a pipe without a writer is not waited for', async () => {
    await fromTheTable(() => execFileSync('mkfifo', [DWO]), 2);
  });

  test('that is a directory', () => fromTheTable(() => mkdirSync(DWO), 2));

  test('that is missing', () => fromTheTable(() => {}, 0));

  test('that leads to a file outside of the root, by a symbolic link', async () => {
    await fromTheTable(() => symlinkSync('/etc/shadow', DWO), 0);
    await fromTheTable(() => symlinkSync(join(base, 'saved'), DWO), 0);
    await fromTheTable(() => symlinkSync('../../saved', DWO), 0);
    await fromTheTable(() => symlinkSync('program-one.dwo', DWO), 2);
  });

  test('that leads to a file inside of the root, by an absolute symbolic link', async () => {
    renameSync(DWO, inRoot('elsewhere.dwo'));
    symlinkSync('/elsewhere.dwo', DWO);
    expect((await askFor(work)).names).toEqual(['twice', 'work']);
  });

  test("that the program's owner may not read", async () => {
    chmodSync(DWO, 0o640);
    expect(await askFor(work)).toMatchObject({ names: ['work'], refused: 2 });
  });

  test('that has gigabytes', async () => {
    truncateSync(DWO, 8 * 2 ** 30);
    const { names, bytes } = await askFor(work);
    expect(names).toEqual(['twice', 'work']);
    expect(bytes).toBeLessThan(16 << 20);
  });

  test('whose compressed section has more bytes than the budget', async () => {
    const [section, content] = ['.debug_info.dwo', join(base, 'content')];
    await fromTheTable(() => {
      const objcopy = (...args: string[]) => execFileSync('objcopy', [...args, DWO]);
      copyFileSync(join(base, 'saved'), DWO);
      objcopy('--dump-section', `${section}=${content}`);
      truncateSync(content, 80 << 20);
      objcopy('--update-section', `${section}=${content}`);
      objcopy('--compress-debug-sections=zlib');
      expect(readFileSync(DWO).length).toBeLessThan(1 << 20);
    }, 0);
  });
});

describe('split DWARF that somebody else can change', () => {
  const OTHER = 11_111;
  const isNamed = async (change: () => void, of = owner): Promise<boolean> => {
    rmSync(DWO, { force: true });
    copyFileSync(join(base, 'saved'), DWO);
    change();
    const fd = openSync(inRoot('build/program'), 'r');
    const symbols = await openSymbols(parseElf(fdSource(fd)), { ...place(), owner: of });
    try {
      return symbols.lookup(work).length === 2;
    } finally {
      symbols.close();
      closeSync(fd);
      for (const path of [inRoot(''), inRoot('build')]) {
        chmodSync(path, 0o755);
        chownSync(path, 0, 0);
      }
    }
  };
  const isRoot = process.getuid?.() === 0;
  if (!isRoot) console.log('skipped: files of other users (needs root)');

  test.skipIf(!isRoot)('names what is theirs to change, and nothing else', async () => {
    const group = { ...owner, mode: 0o775n };
    const ownGroup = (mode: number) => () => [chownSync(DWO, 0, Number(uid)), chmodSync(DWO, mode)];
    expect(await isNamed(() => chownSync(DWO, Number(uid), 0))).toBe(true);
    expect(await isNamed(() => chownSync(DWO, OTHER, 0))).toBe(false);
    expect(await isNamed(() => chmodSync(DWO, 0o666))).toBe(false);
    expect(await isNamed(ownGroup(0o664))).toBe(false);
    expect(await isNamed(ownGroup(0o664), group)).toBe(true);
    // for root's program it would have to be root's
    expect(await isNamed(() => chownSync(DWO, OTHER, 0), { uid: 0n, gid: 0n, mode: 0o755n })).toBe(false);
  });

  test.skipIf(!isRoot)('nor do directories of others lead to a file of the right owner', async () => {
    expect(await isNamed(() => chownSync(inRoot('build'), OTHER, 0))).toBe(false);
    expect(await isNamed(() => chmodSync(inRoot('build'), 0o777))).toBe(false);
    expect(await isNamed(() => chmodSync(inRoot('build'), 0o775))).toBe(true);
    expect(await isNamed(() => chmodSync(inRoot('build'), 0o700))).toBe(false);
    // in a sticky one names are their owners'
    expect(await isNamed(() => chmodSync(inRoot('build'), 0o1777))).toBe(true);
    const link = (user: number) => () => {
      renameSync(DWO, inRoot('elsewhere.dwo'));
      symlinkSync('../elsewhere.dwo', DWO);
      lchownSync(DWO, user, 0);
      chmodSync(inRoot('build'), 0o1777);
    };
    expect(await isNamed(link(OTHER))).toBe(false);
    expect(await isNamed(link(0))).toBe(true);
    // whoever owns the root owns all that is in it
    expect(
      await isNamed(() => {
        for (const path of [inRoot(''), inRoot('build'), DWO]) chownSync(path, OTHER, 0);
      }),
    ).toBe(true);
  });

  test('a link that leads to itself is followed to the limit', async () => {
    expect(
      await isNamed(() => {
        rmSync(DWO);
        symlinkSync('program-one.dwo/../program-one.dwo', DWO);
      }),
    ).toBe(false);
  });
});

describe('a path', () => {
  const open = (request: FileRequest, at = place()) => {
    const pool = new FilePool();
    try {
      const source = new DebugFiles(at, pool).open(request)?.source;
      return { bytes: source && Buffer.from(source.read(0, source.size)).toString(), ...pool.takeStats() };
    } finally {
      pool.close();
    }
  };
  const dwz = (path: string): FileRequest => ({ kind: 'dwz', path, buildId: '' });
  beforeAll(() => {
    writeFileSync(join(base, 'outside'), 'outside');
    writeFileSync(inRoot('inside'), 'inside');
  });

  test('stays in the root, relative or absolute', async () => {
    expect(open(dwz('../inside')).bytes).toBe('inside');
    expect(open(dwz('/inside')).bytes).toBe('inside');
    expect(open(dwz('../../../../inside')).bytes).toBe('inside');
    for (const path of ['../../outside', '/../outside', join(base, 'outside'), `/build/../..${base}/outside`])
      expect(open(dwz(path)).bytes).toBeUndefined();
  });

  test('is empty, or longer than any', async () => {
    for (const path of ['', 'x'.repeat(300), 'x/'.repeat(5000), '\ud800'])
      expect(open(dwz(path)).bytes).toBeUndefined();
  });

  test('does not depend on where the agent was started', async () => {
    const request = { kind: 'dwo', path: 'inside', directory: '..' } as const;
    expect(open(request).bytes).toBe('inside');
  });

  const hostRoot = (): ElfPlace => ({ path: '/usr/bin/program', root: ownRoot(), owner });
  test('into a pseudo file system is refused: reading could take from others, or never end', async () => {
    for (const path of ['/proc/self/maps', '/proc/version', '/sys/kernel/notes'].filter(existsSync))
      expect(open(dwz(path), hostRoot())).toMatchObject({ bytes: undefined, refused: 1 });
  });

  test('through a link of /proc that leads anywhere is refused', async () => {
    const fd = openSync(inRoot('inside'), 'r');
    const path = `/proc/${process.pid}/fd/${fd}`;
    expect(open(dwz(path), hostRoot()).bytes).toBeUndefined();
    expect(open(dwz(`/proc/${process.pid}/root${inRoot('inside')}`), hostRoot()).bytes).toBeUndefined();
    closeSync(fd);
  });

  test('to a device or a secret is refused', async () => {
    for (const path of ['/dev/zero', '/etc/shadow'].filter(existsSync))
      expect(open(dwz(path), hostRoot())).toMatchObject({ bytes: undefined, refused: 1 });
  });

  test('a build ID that is not a hex number leads nowhere', async () => {
    const at = { ...place(), path: '/program' };
    mkdirSync(dirname(inRoot('usr/lib/debug/.build-id/..')), { recursive: true });
    expect(open({ kind: 'build-id', buildId: '../../../../inside' }, at)).toMatchObject({
      opened: 0,
      refused: 0,
    });
  });

  test('a file that was replaced meanwhile is read no more', async () => {
    const pool = new FilePool(1);
    const files = new DebugFiles(place(), pool);
    writeFileSync(inRoot('first'), 'first');
    const first = files.open(dwz('/first'))!.source;
    const second = files.open(dwz('/inside'))!.source;
    expect(Buffer.from(first.read(0, 5)).toString()).toBe('first');
    expect(Buffer.from(second.read(0, 6)).toString()).toBe('inside');
    writeFileSync(inRoot('new'), 'other');
    renameSync(inRoot('new'), inRoot('first'));
    expect(() => first.read(0, 5)).toThrow(OutOfBounds);
    expect(() => second.read(0, 7)).toThrow(OutOfBounds);
    pool.close();
  });
});

test('what names depend on is told: files that were found, and places where there was none', async () => {
  const { symbols, close } = await openProgram();
  symbols.lookup(work);
  const { ino } = statSync(DWO);
  expect(symbols.probes).toEqual([
    { where: 'root', path: '/build/program.dwp', identity: '' },
    { where: 'root', path: '/build/program-one.dwo', identity: expect.stringContaining(`:${ino}:`) },
  ]);
  for (const { path, identity } of symbols.probes!) expect(root.identify(path)).toBe(identity);
  close();
});

test('without the root of the process only the host is asked, by build ID', async () => {
  const bytes = readFileSync(inRoot('build/program'));
  const symbols = await openSymbols(parseElf(bufferSource(bytes)), {
    path: '/build/program',
    root: undefined,
    owner,
  });
  expect(symbols.lookup(work).map((frame) => frame.function)).toEqual(['work']);
  expect(symbols.takeFileStats()).toMatchObject({ opened: 0, refused: 0, damaged: 0 });
  symbols.close();
});

/** Descriptors of this process that lead below a directory. */
function openBelow(directory: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target.startsWith(directory.replace(/\/$/, '')) ? [target] : [];
    } catch {
      return [];
    }
  });
}
