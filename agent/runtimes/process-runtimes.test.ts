import { beforeEach, describe, expect, it, vi } from 'vitest';
import { toFileKey, toPid } from '../../common/base/brand.ts';
import { type AttachedRuntime, UnsupportedRuntime } from '../interpreters/contract.ts';
import { hotspot } from '../interpreters/hotspot/plugin.ts';
import { ForeignReader } from '../processes/foreign-reader.ts';
import { ATTACHMENT, HOTSPOT, Runtime } from '../records/records.gen.ts';
import type { ProcessIdentity, RuntimeRecord } from '../records/records.ts';
import { ProcessRuntimes, type RuntimePlace } from './process-runtimes.ts';

const KEY = toFileKey('00000000000000aa');
const PID = toPid(4711);
const FILE = { runtime: 'hotspot', version: '17.0.1', facts: 'of the file', entry: new Uint8Array(0) };

const detected = (fields: Partial<RuntimeRecord> = {}): RuntimeRecord => ({
  pid: PID,
  execId: 1,
  startBoottimeNs: 5n,
  runtime: Runtime.HOTSPOT,
  key: KEY,
  base: 4096,
  isAttached: false,
  ...fields,
});

/** The kernel's map. */
class FakeMap {
  readonly entries = new Map<string, Buffer>();
  writes = 0;
  isFull = false;

  publish(_plugin: unknown, process: ProcessIdentity, entry: Buffer): boolean {
    if (this.isFull) return false;
    this.writes++;
    this.entries.set(`${process.pid}/${process.execId}`, entry);
    return true;
  }

  readonly told: unknown[] = [];
  tellRuntimes(...answer: unknown[]): void {
    this.told.push(answer);
  }

  withdraw(_plugin: unknown, process: ProcessIdentity): void {
    this.entries.delete(`${process.pid}/${process.execId}`);
  }
}

describe('runtimes of processes', () => {
  let map: FakeMap;
  let runtimes: ProcessRuntimes;
  let place: RuntimePlace | undefined;
  const told: string[] = [];
  const attach = vi.spyOn(hotspot as Required<typeof hotspot>, 'attach');
  const found = (first: number): AttachedRuntime => {
    const entry = new Uint8Array(HOTSPOT.bytes);
    entry[HOTSPOT.heapCount] = first;
    return { entry, facts: `of the process ${first}` };
  };

  beforeEach(() => {
    map = new FakeMap();
    place = undefined;
    told.length = 0;
    attach.mockReset().mockImplementation(() => found(1));
    const clock = { cpu: 0, cpuMicros: () => (clock.cpu += 100_000), wallMs: () => 0 };
    runtimes = new ProcessRuntimes({
      runtimeOf: (key) => (key === KEY ? FILE : undefined),
      filesOf: () => ({ places: place ? [place] : [], isComplete: true }),
      map,
      onRefused: (problem) => told.push(problem),
      clock,
      reader: new ForeignReader(),
    });
  });

  it('are attached to, and let go when they end', () => {
    runtimes.onDetected(detected());
    expect(attach).toHaveBeenCalledWith(expect.anything(), 4096, 'of the file');
    const entry = map.entries.get('4711/1')!;
    expect(entry.readBigUInt64LE(ATTACHMENT.fileKey)).toBe(0xaan);
    expect(entry.readUInt32LE(ATTACHMENT.isAttached)).toBe(1);
    expect(runtimes.factsOf(PID, hotspot)).toBe('of the process 1');
    runtimes.forget(PID);
    expect(map.entries.size).toBe(0);
    expect(runtimes.factsOf(PID, hotspot)).toBeUndefined();
  });

  it('that are starting are asked for again', () => {
    attach.mockReturnValueOnce(undefined);
    runtimes.onDetected(detected());
    expect(runtimes.stats).toMatchObject({ notYet: 1, attached: 0 });
    runtimes.onDetected(detected());
    expect(runtimes.stats).toMatchObject({ notYet: 1, attached: 1 });
  });

  it('are looked for in other mappings of their file', () => {
    attach.mockImplementation((_, base) => (base === 8192 ? found(1) : undefined));
    place = { runtime: 'hotspot', key: KEY, base: 8192 };
    runtimes.onDetected(detected());
    expect(attach.mock.calls.map(([, base]) => base)).toEqual([4096, 8192]);
    expect(runtimes.stats).toMatchObject({ notYet: 0, attached: 1 });
  });

  it('have an entry that is written again only where it says more, or is gone', () => {
    runtimes.onDetected(detected());
    runtimes.onDetected(detected({ isAttached: true }));
    expect(map.writes).toBe(1);
    attach.mockReturnValueOnce(found(2));
    runtimes.onDetected(detected({ isAttached: true }));
    expect(map.writes).toBe(2);
    runtimes.onDetected(detected());
    expect(map.writes).toBe(3);
  });

  it('are found by their file where only their code was seen', () => {
    const record = detected({ key: undefined, base: 0 });
    runtimes.onDetected(record);
    expect(runtimes.stats.noFile).toBe(1);
    place = { runtime: 'hotspot', key: KEY, base: 8192 };
    runtimes.onDetected(record);
    expect(attach).toHaveBeenCalledWith(expect.anything(), 8192, 'of the file');
  });

  it('are looked for once where BPF asks which a process has, and not attached to before their turn', () => {
    const question = detected({ runtime: Runtime.NONE, key: undefined, base: 0 });
    runtimes.onDetected(question);
    place = { runtime: 'hotspot', key: KEY, base: 8192 };
    runtimes.onDetected(question);
    const process = { pid: PID, execId: 1, startBoottimeNs: 5n };
    expect(map.told).toEqual([
      [process, [], true],
      [process, [{ id: Runtime.HOTSPOT, key: KEY, base: 8192 }], true],
    ]);
    expect(attach).not.toHaveBeenCalled();
    expect(runtimes.stats).toMatchObject({ asked: 2, noFile: 0 });
  });

  it('that are refused again and again are given up, and a person is told', () => {
    attach.mockImplementation(() => {
      throw new UnsupportedRuntime('it has 17 code heaps');
    });
    for (let i = 0; i < 4; i++) runtimes.onDetected(detected());
    // it may be starting
    expect(told).toEqual([]);
    for (let i = 0; i < 4; i++) runtimes.onDetected(detected());
    expect(attach).toHaveBeenCalledTimes(5);
    expect(told).toEqual(["hotspot 17.0.1 can't be attached to: it has 17 code heaps"]);
    // another program under the same number
    runtimes.onDetected(detected({ execId: 2 }));
    expect(attach).toHaveBeenCalledTimes(6);
    expect(runtimes.stats).toMatchObject({ refused: 1, failed: 0, notYet: 5 });
  });

  it('cost that process alone where the plug-in fails', () => {
    attach.mockImplementation(() => {
      throw new TypeError('an error of the plug-in');
    });
    runtimes.onDetected(detected());
    expect(runtimes.stats).toMatchObject({ failed: 1, refused: 0 });
    expect(told[0]).toMatch(/TypeError: an error of the plug-in/);
  });

  it('wait where attaching to all of them has taken too long', () => {
    attach.mockReturnValue(undefined);
    for (let i = 0; i < 30; i++) runtimes.onDetected(detected());
    expect(runtimes.stats).toMatchObject({ notYet: 20, costly: 10 });
  });

  it('count where the map is full', () => {
    map.isFull = true;
    runtimes.onDetected(detected());
    expect(runtimes.stats).toMatchObject({ attached: 0, unpublished: 1 });
    expect(runtimes.factsOf(PID, hotspot)).toBeUndefined();
  });

  it('other than those that are attached to are left alone', () => {
    runtimes.onDetected(detected({ runtime: Runtime.V8 }));
    runtimes.onDetected(detected({ key: toFileKey('00000000000000bb') }));
    expect(attach).not.toHaveBeenCalled();
    expect(runtimes.stats.noFile).toBe(1);
  });
});
