import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { agentBudget, readMemoryLimit, storeBudget } from './memory-limit.ts';

const MIB = 2 ** 20;
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A machine's /proc and cgroups; $ in a text is where they lie. */
function machine(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'everyframe-cgroup-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text.replaceAll('$', folder));
  }
  return folder;
}

const V2 = '31 23 0:28 / $/cg rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n';
const V1 =
  '35 31 0:32 / $/memory\\040v1 rw - cgroup cgroup rw,memory\n36 31 0:33 / $/cpu rw - cgroup cgroup rw,cpu\n';

function limitOf(files: Record<string, string>): [number, string] | undefined {
  const folder = machine(files);
  const limit = readMemoryLimit(join(folder, 'proc'));
  return limit && [limit.bytes / MIB, limit.file.slice(folder.length)];
}

describe('the memory limit of a cgroup', () => {
  it.each<[string, Record<string, string>, [number, string] | undefined]>([
    ['none is known', {}, undefined],
    ['version 2 without one', { 'proc/self/cgroup': '0::/a\n', 'cg/a/memory.max': 'max\n' }, undefined],
    [
      'version 2',
      { 'proc/self/cgroup': '0::/a\n', 'cg/a/memory.max': '268435456\n' },
      [256, '/cg/a/memory.max'],
    ],
    [
      'of a group above',
      {
        'proc/self/cgroup': '0::/a/b/c\n',
        'cg/a/b/c/memory.max': '1073741824',
        'cg/a/memory.max': '104857600',
      },
      [100, '/cg/a/memory.max'],
    ],
    [
      'where it slows down',
      { 'proc/self/cgroup': '0::/a\n', 'cg/a/memory.max': '268435456', 'cg/a/memory.high': '209715200' },
      [200, '/cg/a/memory.high'],
    ],
    [
      'a name with a colon',
      { 'proc/self/cgroup': '0::/a:b\n', 'cg/a:b/memory.max': '104857600' },
      [100, '/cg/a:b/memory.max'],
    ],
    [
      'in a namespace, outside of its root',
      { 'proc/self/cgroup': '0::/../x\n', 'cg/memory.max': '104857600' },
      [100, '/cg/memory.max'],
    ],
    ['nonsense', { 'proc/self/cgroup': '0::/a\n', 'cg/a/memory.max': 'lots\n' }, undefined],
  ])('%s', (_, files, expected) => {
    expect(limitOf({ 'proc/self/mountinfo': V2, ...files })).toEqual(expected);
  });

  it('of version 1, with the path of a container', () => {
    const files = {
      'proc/self/cgroup': '4:memory:/docker/1/in\n3:cpu:/\n0::/\n',
      'memory v1/in/memory.limit_in_bytes': '9223372036854771712\n',
      'memory v1/memory.limit_in_bytes': '209715200\n',
    };
    expect(limitOf({ ...files, 'proc/self/mountinfo': V1.replace('0:32 /', '0:32 /docker/1') })).toEqual([
      200,
      '/memory v1/memory.limit_in_bytes',
    ]);
  });
});

describe('budgets', () => {
  const texts: string[] = [];
  const add = (text: string) => void texts.push(text);
  const log = { info: add, warn: add };
  const limit = (mib: number) => ({ bytes: mib * MIB, file: '/f' });
  const told = (budget: () => number): [number, string[]] => {
    texts.length = 0;
    return [budget() / MIB, [...texts]];
  };

  it('are what was asked for where that fits, without a word', () => {
    expect(told(() => agentBudget(256 * MIB, undefined, log))).toEqual([256, []]);
    expect(told(() => agentBudget(256 * MIB, limit(400), log))).toEqual([256, []]);
    expect(told(() => storeBudget(256 * MIB, limit(500), log))).toEqual([256, []]);
  });

  it('stay below the limit, and say so', () => {
    expect(told(() => agentBudget(256 * MIB, limit(200), log))).toEqual([
      160,
      ['200 MiB are the limit (/f): the agent keeps to 160 MiB in place of 256 MiB'],
    ]);
    expect(told(() => agentBudget(256 * MIB, limit(400), log, { withCollector: true }))[0]).toBe(160);
    expect(told(() => storeBudget(256 * MIB, limit(400), log, { withAgent: true }))[0]).toBe(120);
  });

  it('say where the limit is too small for anything', () => {
    expect(told(() => agentBudget(256 * MIB, limit(60), log))).toEqual([
      64,
      [
        '60 MiB are the limit (/f), and the agent needs 160 MiB: the kernel may end it; give the group more',
        '60 MiB are the limit (/f): the agent keeps to 64 MiB in place of 256 MiB',
      ],
    ]);
    expect(told(() => storeBudget(256 * MIB, limit(60), log))[0]).toBe(16);
  });
});
