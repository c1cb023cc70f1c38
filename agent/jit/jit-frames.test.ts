/** Against processes and files of its own: a fake /proc of folders, and real processes where links matter. */

import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { Frame } from '../traces/frame.ts';
import { JitFrames } from './jit-frames.ts';

const PID = toPid(4711);
/** Started 10 s after boot. */
const IDENTITY = { pid: PID, execId: 1, startBoottimeNs: 10_000_000_000n };
const uid = process.getuid!();
if (uid !== 0) console.log('skipped: a map of another user (needs root)');

let root: string;
let tmp: string;
let nowMs: number;
let frames: JitFrames;

/** What the agent asks of /proc: the innermost PID is 7. */
function addProcess(pid: number, innerPid: number, owner: number): void {
  const folder = join(root, String(pid));
  mkdirSync(join(folder, 'root/tmp'), { recursive: true });
  const stat = Array.from({ length: 52 }, () => '0');
  stat[21] = '1000';
  writeFileSync(join(folder, 'stat'), `${pid} (a b) S ${stat.slice(3).join(' ')}\n`);
  writeFileSync(
    join(folder, 'status'),
    `Name:\ta\nNSpid:\t${pid}\t${innerPid}\nUid:\t${owner}\t${owner}\t${owner}\t${owner}\n`,
  );
  writeFileSync(join(folder, 'maps'), '');
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'everyframe-jit-'));
  writeFileSync(join(root, 'uptime'), readFileSync('/proc/uptime'));
  addProcess(PID, 7, uid);
  tmp = join(root, String(PID), 'root/tmp');
  nowMs = 0;
  frames = new JitFrames({ proc: root, nowMs: () => nowMs });
});

afterEach(async () => {
  await frames.stop();
  rmSync(root, { recursive: true });
});

const map = (): string => join(tmp, 'perf-7.map');
const frameAt = (address: number, identity = IDENTITY): Frame => frames.frameOf(identity, address);
const nameOf = ({ lines, mapping }: Frame): string => lines[0]?.function ?? mapping.filename;

async function names(...list: Frame[]): Promise<string[]> {
  nowMs += 60_000;
  await frames.symbolizeFrames();
  return list.map(nameOf);
}

describe('frames in memory that no file backs', () => {
  it('are named out of the perf map of the innermost PID below the root of the process', async () => {
    writeFileSync(map(), '1000 10 one\n2000 10 two\n');
    writeFileSync(join(tmp, `perf-${PID}.map`), '1000 10 wrong\n');
    const list = [frameAt(0x1000), frameAt(0x2008), frameAt(0x3000)];
    expect(await names(...list)).toEqual(['one', 'two', '[anon]']);
    expect(list[0]).toMatchObject({ address: 0x1000, frameType: 'native', mapping: { filename: '[jit]' } });
    expect(frames.stats).toMatchObject({ processes: 1, perfMaps: 1, functions: 2, named: 2 });
  });

  it('are functions of JavaScript where V8 wrote them down, until other code stands there', async () => {
    const frame = frameAt(0x1000);
    writeFileSync(map(), '1000 10 JS:*fib /srv/app.js:2:13\n');
    expect(await names(frame)).toEqual(['fib']);
    expect(frame).toMatchObject({
      frameType: 'v8js',
      lines: [{ file: '/srv/app.js', line: 0, startLine: 2 }],
    });
    appendFileSync(map(), '1000 10 BytecodeHandler:LdaSmi\n');
    expect(await names(frame)).toEqual(['BytecodeHandler:LdaSmi']);
    expect(frame.frameType).toBe('native');
  });

  it('get names that come later, and others where their code was replaced', async () => {
    const [one, two] = [frameAt(0x1000), frameAt(0x2000)];
    expect(await names(one, two)).toEqual(['[anon]', '[anon]']);
    writeFileSync(map(), '1000 10 one\n');
    expect(await names(one, two)).toEqual(['one', '[anon]']);
    appendFileSync(map(), '2000 10 two\n');
    expect(await names(one, two)).toEqual(['one', 'two']);
    appendFileSync(map(), '1000 8 newer\n');
    expect(await names(one, two)).toEqual(['newer', 'two']);
    expect(frames.stats).toMatchObject({ perfMaps: 1, named: 2, renamed: 1 });
  });

  it('are named anew where the file is written anew, in place or under a new inode', async () => {
    const frame = frameAt(0x1000);
    writeFileSync(map(), '5000 10 other\n1000 10 first\n');
    expect(await names(frame)).toEqual(['first']);
    writeFileSync(map(), '1000 10 second\n');
    expect(await names(frame)).toEqual(['second']);
    unlinkSync(map());
    writeFileSync(map(), '1000 10 second\n2000 10 third\n');
    const another = frameAt(0x2000);
    expect(await names(frame, another)).toEqual(['second', 'third']);
  });

  it('of one execution never have the names of another', async () => {
    writeFileSync(map(), '1000 10 one\n');
    addProcess(4712, 8, uid);
    writeFileSync(join(root, '4712/root/tmp/perf-8.map'), '1000 10 other\n');
    const list = [frameAt(0x1000), frameAt(0x1000, { ...IDENTITY, pid: toPid(4712) })];
    expect(await names(...list)).toEqual(['one', 'other']);
    // an exec: the earlier frames keep their names, the later ones start anew
    const later = frameAt(0x1000, { ...IDENTITY, execId: 2 });
    rmSync(map());
    expect(await names(...list, later)).toEqual(['one', 'other', '[anon]']);
  });

  it('are named after the end of their process, if it was known before', async () => {
    writeFileSync(map(), '1000 10 one\n');
    const frame = frameAt(0x1000);
    expect(await names(frame)).toEqual(['one']);
    const late = frameAt(0x2000);
    appendFileSync(map(), '2000 10 last\n');
    frames.onExit(IDENTITY);
    rmSync(join(root, String(PID)), { recursive: true });
    expect(await names(frame, late)).toEqual(['one', 'last']);
  });

  it('of a process whose PID is another one by now have no names', async () => {
    writeFileSync(map(), '1000 10 one\n');
    expect(await names(frameAt(0x1000, { ...IDENTITY, startBoottimeNs: 20_000_000_000n }))).toEqual([
      '[anon]',
    ]);
    expect(frames.stats).toMatchObject({ perfMaps: 0 });
  });
});

describe('a perf map is refused', () => {
  const refused = async (): Promise<unknown> => {
    expect(await names(frameAt(0x1000))).toEqual(['[anon]']);
    expect(await names(frameAt(0x1000))).toEqual(['[anon]']);
    const { notOwned, notRegular, outdated, perfMaps } = frames.stats;
    return { notOwned, notRegular, outdated, perfMaps };
  };
  const none = { notOwned: 0, notRegular: 0, outdated: 0, perfMaps: 0 };

  it.skipIf(uid !== 0)('where it is not of the user of the process', async () => {
    writeFileSync(map(), '1000 10 one\n');
    chownSync(map(), 65534, 65534);
    expect(await refused()).toEqual({ ...none, notOwned: 1 });
  });

  it('where it is a link, or below one', async () => {
    writeFileSync(join(tmp, 'elsewhere'), '1000 10 one\n');
    symlinkSync(join(tmp, 'elsewhere'), map());
    expect(await refused()).toEqual({ ...none, notRegular: 1 });
    addProcess(4712, 8, uid);
    rmSync(join(root, '4712/root/tmp'), { recursive: true });
    symlinkSync(tmp, join(root, '4712/root/tmp'));
    writeFileSync(join(tmp, 'perf-8.map'), '1000 10 other\n');
    expect(await names(frameAt(0x1000, { ...IDENTITY, pid: toPid(4712) }))).toEqual(['[anon]']);
  });

  it('where it is a pipe, without waiting for its other end', async () => {
    execFileSync('mkfifo', [map()]);
    expect(await refused()).toEqual({ ...none, notRegular: 1 });
  });

  it('where it was written before the process started', async () => {
    writeFileSync(map(), '1000 10 one\n');
    utimesSync(map(), 1, 1);
    expect(await refused()).toEqual({ ...none, outdated: 1 });
  });
});
