import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { parseStat } from './proc-files.ts';
import { OWN_VIEW, RootViews } from './root-views.ts';

const directory = mkdtempSync(join(tmpdir(), 'root-views-'));
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
afterAll(() => rmSync(directory, { recursive: true }));

async function start(command: string, ...args: string[]) {
  const child = spawn(command, args);
  children.push(child);
  const pid = toPid(child.pid!);
  await vi.waitFor(() => expect(readFileSync(`/proc/${pid}/comm`, 'latin1')).toBe('sleep\n'), 10_000);
  const startTicks = parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))!.startTicks;
  return { child, pid, startBoottimeNs: startTicks * 10_000_000n };
}

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log('skipped: views of mount namespaces (needs root)');

describe.skipIf(!isRoot)('a view', () => {
  test("is the agent's own, for processes of its namespace and such as are gone", async () => {
    const views = new RootViews();
    const own = await start('sleep', '60');
    expect(views.of(own)).toBe(OWN_VIEW);
    expect(views.of({ ...own, startBoottimeNs: 1n })).toBe(OWN_VIEW);
    expect(views.of({ pid: toPid(0x3fff_ffff), startBoottimeNs: 1n })).toBe(OWN_VIEW);
    expect(views.size).toBe(0);
  });

  test('is that of a mount namespace with the same root directory, and shared in it', async () => {
    const views = new RootViews();
    const one = await start('unshare', '-m', 'sleep', '60');
    const two = await start('nsenter', '-m', '-t', String(one.pid), 'sleep', '60');
    const other = await start('unshare', '-Urm', 'sleep', '60');
    const view = views.of(one);
    expect(view).not.toBe(OWN_VIEW);
    expect(views.of(two)).toBe(view);
    expect([OWN_VIEW, view]).not.toContain(views.of(other));
    views.closeAll();
  });

  test('of a process that ended can be used for a while, and is closed then', async () => {
    let now = 0;
    const views = new RootViews({ idleMs: 20, now: () => now });
    const { child, pid, startBoottimeNs } = await start('unshare', '-m', 'sleep', '60');
    views.note(pid);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const view = views.of({ pid, startBoottimeNs });
    expect(view).not.toBe(OWN_VIEW);
    await views.use(view, async (root) => {
      now = 1000;
      await vi.waitFor(() => expect(views.size).toBe(1));
      expect(readlinkSync(`/proc/self/fd/${root}`)).toBe('/');
    });
    now = 2000;
    await vi.waitFor(() => expect(views.size).toBe(0), 5000);
    expect(await views.use(view, async (root) => root)).toBeUndefined();
    expect(views.of({ pid, startBoottimeNs })).toBe(OWN_VIEW);
  });

  test('more than are kept open are known anew', async () => {
    const views = new RootViews({ max: 1 });
    const [one, two] = [
      await start('unshare', '-m', 'sleep', '60'),
      await start('unshare', '-m', 'sleep', '60'),
    ];
    const first = views.of(one!);
    expect(views.of(two!)).not.toBe(first);
    expect(views.of(one!)).not.toBe(first);
    expect(views.size).toBe(1);
    views.closeAll();
  });
});
