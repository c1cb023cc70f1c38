/** The consumer of the ring buffer where descriptors run out. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { loadNative } from '../agent/base/native.ts';
import { Targets } from '../agent/records/records.gen.ts';
import { BpfPrograms } from '../agent/tracer/bpf-object.ts';
import { hasTool, missingRights } from './support/fixtures.ts';

const SETTINGS = {
  runtimes: [],
  maxUserFrames: 1023,
  targets: Targets.CHOSEN,
  sendIdleFrames: false,
  ringBytes: 1 << 20,
  maxFiles: 16,
  maxTables: 16,
};
/** Of libbpf, of the thread that waits, and to end that. */
const DESCRIPTORS = 3;

const held: number[] = [];
const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))![1];
const setLimit = (files: number | string): unknown =>
  execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${files}:`]);
afterAll(() => {
  for (const fd of held.splice(0)) closeSync(fd);
  setLimit(limit!);
});

function holdAll(): void {
  setLimit(Math.max(...readdirSync('/proc/self/fd').map(Number)) + 10);
  for (;;) {
    try {
      held.push(openSync('/dev/null', 'r'));
    } catch (error) {
      expect(error).toMatchObject({ code: 'EMFILE' });
      return;
    }
  }
}

it.skipIf(missingRights || !hasTool('prlimit'))(
  'is refused where one is missing, and gives back those that it had',
  () => {
    const native = loadNative();
    const programs = new BpfPrograms(native, SETTINGS, (message) => expect.unreachable(message));
    const records = programs.base.mapFd('records');
    holdAll();
    for (let free = 0; free < DESCRIPTORS; free++) {
      const open = (): unknown => new native.Ring(records, () => {});
      expect(open, `${free} are free`).toThrow(expect.objectContaining({ code: 'EMFILE' }));
      closeSync(held.pop()!);
    }
    for (let round = 0; round < 2; round++) new native.Ring(records, () => {}).close();
    programs.close();
  },
);
