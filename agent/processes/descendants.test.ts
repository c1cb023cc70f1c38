import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Pid, toPid } from '../../common/base/brand.ts';
import { addWithDescendants, descendantsOf } from './descendants.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A /proc of processes by number: parent, and time of start. */
function procOf(processes: Record<number, [parent: number, start?: number]>): string {
  const proc = mkdtempSync(join(tmpdir(), 'everyframe-proc-'));
  folders.push(proc);
  mkdirSync(join(proc, 'sys'));
  for (const [pid, [parent, start = 1]] of Object.entries(processes)) set(proc, pid, parent, start);
  return proc;
}

function set(proc: string, pid: number | string, parent: number, start = 1): void {
  mkdirSync(join(proc, String(pid)), { recursive: true });
  // a name may look like fields of its own
  const fields = `S ${parent} ${'0 '.repeat(17)}${start} 0`;
  writeFileSync(join(proc, `${pid}/stat`), `${pid} (a) S 7 (x) ${fields}\n`);
}

class FakeMap {
  readonly pids = new Set<Pid>();
  readonly room: number;
  readonly onAdd: (pid: Pid) => void;

  constructor(room = 100, onAdd: (pid: Pid) => void = () => {}) {
    this.room = room;
    this.onAdd = onAdd;
  }

  addTarget(pid: Pid): boolean {
    if (this.pids.size >= this.room) return false;
    this.pids.add(pid);
    this.onAdd(pid);
    return true;
  }
  removeTarget(pid: Pid): void {
    this.pids.delete(pid);
  }
}

describe('descendants', () => {
  const tree = { 1: [0], 10: [1], 11: [10], 12: [11], 13: [10], 20: [1], 21: [20] } as const;

  it('are all that is below, parents first', () => {
    const proc = procOf(tree as never);
    expect(descendantsOf([toPid(10)], proc).sort()).toEqual([11, 12, 13]);
    expect(descendantsOf([toPid(10), toPid(20), toPid(11)], proc).sort()).toEqual([12, 13, 21]);
    expect(descendantsOf([toPid(99)], proc)).toEqual([]);
    // this process, as a shell's other child
    const { pid } = process;
    expect(descendantsOf([toPid(2)], procOf({ 3: [2], [pid]: [2], [pid + 1]: [pid] }))).toEqual([3]);
  });

  it('end where parents go round', () => {
    expect(descendantsOf([toPid(2)], procOf({ 2: [3], 3: [2] }))).toEqual([3]);
  });

  it('that were forked during the first look are found by the next', () => {
    const proc = procOf(tree as never);
    const map = new FakeMap(100, (pid) => pid === 13 && set(proc, 14, 13));
    expect(addWithDescendants([toPid(10)], map, proc)).toEqual({ added: 5, leftOut: 0 });
    expect([...map.pids].sort()).toEqual([10, 11, 12, 13, 14]);
  });

  it('leave no number behind that is somebody else by now', () => {
    const proc = procOf(tree as never);
    const map = new FakeMap(100, (pid) => pid === 12 && set(proc, 12, 1, 2));
    addWithDescendants([toPid(10)], map, proc);
    expect([...map.pids].sort()).toEqual([10, 11, 13]);
  });

  it('that do not fit are counted', () => {
    expect(addWithDescendants([toPid(10)], new FakeMap(2), procOf(tree as never))).toEqual({
      added: 2,
      leftOut: 2,
    });
  });
});
