import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Kernel } from './kernel.ts';

const MINUTE = 60_000;
const BASE = `ffffffff81000000 T _text
ffffffff81000000 T start_kernel
ffffffff81000100 T do_work
ffffffff81001000 T _etext
`;
const MODULE = 'ffffffffc0002000 t work\t[demo]\n';
const PROGRAM = 'ffffffffc0900000 t bpf_prog_0123456789abcdef_late\t[bpf]\n';
const MODULE_LINE = 'demo 4096 0 - Live 0xffffffffc0002000\n';

let root = '';
const proc = (name: string, text: string) => writeFileSync(join(root, 'proc', name), text);
const note = (bytes: string) => Buffer.from(`040000001400000003000000474e5500${bytes}`, 'hex');

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kernel-'));
  for (const path of ['proc', 'sys/kernel', 'sys/module/demo/notes'])
    mkdirSync(join(root, path), { recursive: true });
  writeFileSync(join(root, 'sys/kernel/notes'), note('4a5a9b0affb66c437abcd455d2738af879985fa9'));
  writeFileSync(join(root, 'sys/module/demo/notes/.note.gnu.build-id'), note('ab'.repeat(20)));
  proc('kallsyms', BASE);
  proc('modules', '');
});
afterEach(() => rmSync(root, { recursive: true }));

const open = (now: () => number) => Kernel.open({ proc: join(root, 'proc'), sys: join(root, 'sys') }, now);

test('the kernel and a module as mappings', async () => {
  proc('kallsyms', BASE + MODULE);
  proc('modules', MODULE_LINE);
  const kernel = await open(() => 0);
  expect(kernel.lookup(0xffffffff81000180n)).toEqual({ name: 'do_work', module: '', offset: 0x180 });
  expect(kernel.locate(0xffffffffc0002010n)).toEqual({
    mapping: kernel.mapping('demo'),
    address: 16,
    name: 'work',
  });
  expect(kernel.locate(0xffffffff90000001n)).toMatchObject({
    mapping: { filename: '[kernel]' },
    address: 0xfffff90000001,
    name: '',
  });
  expect(kernel.mapping('')).toMatchObject({
    filename: 'vmlinux',
    memoryLimit: 0x1000n,
    gnuBuildId: '4a5a9b0affb66c437abcd455d2738af879985fa9',
    fileId: expect.stringMatching(/^[0-9a-f]{32}$/),
  });
  expect(kernel.mapping('demo')).toMatchObject({
    filename: 'demo',
    gnuBuildId: 'ab'.repeat(20),
    memoryLimit: 4096n,
  });
  expect(kernel.mapping('demo')).toBe(kernel.mapping('demo'));
  expect(kernel.mapping('../demo').gnuBuildId).toBe('');
});

test('a module that comes is noticed, at most once a minute', async () => {
  let now = 0;
  const kernel = await open(() => now);
  proc('kallsyms', BASE + MODULE);
  proc('modules', MODULE_LINE);
  now = MINUTE - 1;
  expect(await kernel.refresh()).toBe(false);
  now = MINUTE;
  expect(await kernel.refresh()).toBe(true);
  expect(kernel.lookup(0xffffffffc0002001n)).toEqual({ name: 'work', module: 'demo', offset: 1 });
  expect(kernel.generation).toBe(2);
});

test('an address without a name makes it look again, less and less often', async () => {
  let now = 0;
  const kernel = await open(() => now);
  const reloads: number[] = [];
  for (now = 0; now < 20 * MINUTE; now += MINUTE) {
    expect(kernel.lookup(0xffffffffc0900010n)).toBeUndefined();
    if (await kernel.refresh()) reloads.push(now / MINUTE);
  }
  expect(reloads).toEqual([1, 3, 7, 15]);
  proc('kallsyms', BASE + PROGRAM);
  now = 100 * MINUTE;
  expect(await kernel.refresh()).toBe(true);
  expect(kernel.lookup(0xffffffffc0900010n)).toMatchObject({ module: 'bpf', offset: 16 });
});

test('nothing missed, nothing changed: nothing is read', async () => {
  let now = 0;
  const kernel = await open(() => now);
  now = 100 * MINUTE;
  kernel.lookup(0xffffffff81000000n);
  expect(await kernel.refresh()).toBe(false);
  expect(kernel.stats.loads).toBe(1);
});

test('hidden or missing symbols say why', async () => {
  proc('kallsyms', '0000000000000000 T _text\n');
  const hidden = await open(() => 0);
  expect(hidden.unavailable).toContain('CAP_SYSLOG');
  expect(hidden.lookup(0xffffffff81000000n)).toBeUndefined();
  rmSync(join(root, 'proc/kallsyms'));
  const missing = await open(() => 0);
  expect(missing.unavailable).toContain('kallsyms');
  expect(missing.stats.failedLoads).toBe(1);
});
