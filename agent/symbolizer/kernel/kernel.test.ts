import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { NativeBpfFunction } from '../../base/native.ts';
import { BpfCode } from './bpf-code.ts';
import { fullAddress, Kernel } from './kernel.ts';

const WAIT = 10_000;
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

const open = async (now: () => number, bpf?: BpfCode) => {
  const roots = { proc: join(root, 'proc'), sys: join(root, 'sys') };
  const kernel = new Kernel(bpf ? { roots, now, bpf } : { roots, now });
  await kernel.open();
  return kernel;
};

test('the kernel and a module as mappings', async () => {
  proc('kallsyms', BASE + MODULE);
  proc('modules', MODULE_LINE);
  const kernel = await open(() => 0);
  expect(kernel.lookup(0xffffffff81000180n)).toEqual({ name: 'do_work', module: '', offset: 0x180 });
  expect(kernel.locate(0xffffffffc0002010n)).toEqual({
    mapping: kernel.mapping('demo'),
    address: 16,
    name: 'work',
    mayChange: false,
  });
  expect(kernel.locate(0xffffffff90000001n)).toMatchObject({
    mapping: { filename: '[kernel]' },
    address: 0xfffff90000001,
    name: '',
  });
  const unknown = kernel.locate(0xffffffff90000001n);
  expect(fullAddress(unknown.mapping, unknown.address)).toBe(0xffffffff90000001n);
  const known = kernel.locate(0xffffffffc0002010n);
  expect(fullAddress(known.mapping, known.address)).toBe(16n);
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

test('a module that comes or goes is noticed; how often it is used makes no difference', async () => {
  let now = 0;
  const kernel = await open(() => now);
  proc('kallsyms', BASE + MODULE);
  proc('modules', MODULE_LINE);
  now = WAIT - 1;
  expect(await kernel.refresh()).toBe(false);
  now = WAIT;
  expect(await kernel.refresh()).toBe(true);
  expect(kernel.lookup(0xffffffffc0002001n)).toEqual({ name: 'work', module: 'demo', offset: 1 });
  expect(kernel.generation).toBe(2);
  proc('modules', MODULE_LINE.replace(' 0 - ', ' 2 other,another, '));
  now = 3 * WAIT;
  expect(await kernel.refresh()).toBe(false);
  proc('kallsyms', BASE);
  proc('modules', '');
  expect(await kernel.refresh()).toBe(true);
  expect(kernel.lookup(0xffffffffc0002001n)).toBeUndefined();
});

test('an address without a name makes it look again, less and less often', async () => {
  let now = 0;
  const kernel = await open(() => now);
  const reloads: number[] = [];
  for (now = 0; now < 20 * WAIT; now += WAIT) {
    expect(kernel.lookup(0xffffffffc0900010n)).toBeUndefined();
    if (await kernel.refresh()) reloads.push(now / WAIT);
  }
  expect(reloads).toEqual([1, 3, 7, 15]);
  proc('kallsyms', BASE + PROGRAM);
  now = 100 * WAIT;
  expect(await kernel.refresh()).toBe(true);
  expect(kernel.lookup(0xffffffffc0900010n)).toMatchObject({ module: 'bpf', offset: 16 });
});

test('nothing missed, nothing changed: nothing is read', async () => {
  let now = 0;
  const kernel = await open(() => now);
  now = 100 * WAIT;
  kernel.lookup(0xffffffff81000000n);
  expect(await kernel.refresh()).toBe(false);
  expect(kernel.stats.loads).toBe(1);
});

/** Programs by ID, as the kernel would list them. */
function programs(code: Map<number, NativeBpfFunction[]>): BpfCode {
  return new BpfCode({
    nextBpfProgram: (after) => Math.min(...[...code.keys()].filter((id) => id > after), 1e9) % 1e9,
    bpfProgramFunctions: (id, named) =>
      code.get(id)?.map(({ start, bytes, name }) => ({ start, bytes, ...(named && name ? { name } : {}) })),
  });
}

test('a BPF program ends where its code does, not where the next symbol is', async () => {
  const text =
    'ffffffffc0a00000 t bpf_trampoline_1\t[bpf]\nffffffffc0b00000 t ftrace_trampoline\t[__builtin__ftrace]\n';
  proc('kallsyms', BASE + PROGRAM + text);
  const kernel = await open(
    () => 0,
    programs(
      new Map([[7, [{ start: 0xffffffffc0900000n, bytes: 0x80, name: 'bpf_prog_0123456789abcdef_late' }]]]),
    ),
  );
  const name = (address: bigint) => kernel.lookup(address)?.name;
  expect(name(0xffffffffc090007fn)).toBe('bpf_prog_0123456789abcdef_late');
  expect(name(0xffffffffc0900080n)).toBeUndefined();
  // what is not a program's has a page
  expect(name(0xffffffffc0a00fffn)).toBe('bpf_trampoline_1');
  expect(name(0xffffffffc0a01000n)).toBeUndefined();
  expect(name(0xffffffffc0b00010n)).toBe('ftrace_trampoline');
  expect(name(0xffffffff81000100n)).toBe('do_work');
});

test('a BPF program has its own name, whenever it was loaded, and none of one that was there before', async () => {
  proc('kallsyms', BASE + PROGRAM);
  const start = 0xffffffffc0900000n;
  const list = new Map([[7, [{ start, bytes: 0x80, name: 'bpf_prog_0123456789abcdef_late' }]]]);
  const kernel = await open(() => WAIT, programs(list));
  expect(kernel.lookup(start + 16n)?.name).toBe('bpf_prog_0123456789abcdef_late');
  list.delete(7);
  list.set(8, [
    { start, bytes: 0x40, name: 'bpf_prog_ffff456789abcdef_next' },
    { start: start + 0x48n, bytes: 0x20, name: 'bpf_prog_ffff456789abcdef_part' },
  ]);
  expect(kernel.lookup(start + 16n)).toEqual({
    name: 'bpf_prog_ffff456789abcdef_next',
    module: 'bpf',
    offset: 16,
  });
  expect(kernel.lookup(start + 0x50n)).toMatchObject({ name: 'bpf_prog_ffff456789abcdef_part', offset: 8 });
  // between the two
  expect(kernel.lookup(start + 0x44n)).toBeUndefined();
  // ended before anybody asked
  list.set(9, [{ start: start + 0x1000n, bytes: 0x20, name: '' }]);
  expect(kernel.lookup(start + 0x1000n)).toEqual({ name: '', module: 'bpf', offset: 0 });
  expect(kernel.stats.loads).toBe(1);
});

test('an address that was missed once only is not worth reading all symbols', async () => {
  let now = 0;
  const kernel = await open(() => now);
  now = 2 * WAIT;
  expect(kernel.lookup(0xffffffffc0900010n)).toBeUndefined();
  expect(await kernel.refresh()).toBe(false);
  expect(await kernel.refresh()).toBe(false);
  kernel.lookup(0xffffffffc0900010n);
  expect(await kernel.refresh()).toBe(true);
});

test('without the right to list programs a symbol reaches to the next one', async () => {
  proc('kallsyms', BASE + PROGRAM);
  const denied = new BpfCode({ nextBpfProgram: () => -1, bpfProgramFunctions: () => undefined });
  const kernel = await open(() => 0, denied);
  expect(kernel.lookup(0xffffffffc0900800n)?.name).toBe('bpf_prog_0123456789abcdef_late');
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
