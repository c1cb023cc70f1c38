/** A process whose memory does not answer costs a reader and its own names, and takes nothing from the others'. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  type BigIntStats,
  closeSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { type FileIdentity, kernelDevice, openVerified } from '../agent/executables/files/open-file.ts';
import { JitFrames } from '../agent/jit/jit-frames.ts';
import { ForeignFiles } from '../agent/processes/foreign-files.ts';
import { ForeignReader } from '../agent/processes/foreign-reader.ts';
import { Penalties } from '../agent/processes/penalties.ts';
import { type Pid, toPid } from '../common/base/brand.ts';
import { compile, missingRights, scratchFolder } from './support/fixtures.ts';

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** A page of zeros that is there, and behind it one that never comes. */
async function startUnanswered({
  directory = mkdtempSync(join(scratchFolder, 'mount-')),
  user = 0,
} = {}): Promise<{ pid: Pid; pages: number; directory: string }> {
  const program = compile('unanswered', 'gcc', ['-O1'], 'unanswered.c');
  const child = spawn(program, [directory, String(user)]);
  children.push(child);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { pid: toPid(child.pid!), pages: Number(line.toString()), directory };
}

const startOf = (pid: Pid): bigint =>
  BigInt(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')[19]!) * 10_000_000n;

const NO_FUSE = "FUSE can't be mounted";

if (missingRights) console.log(`skipped: memory that does not answer (${missingRights})`);

it.skipIf(missingRights)(
  'a page that is never filled costs its process, and nobody else',
  async (context) => {
    const { pid, pages } = await startUnanswered();
    if (pages === 0) context.skip(NO_FUSE);
    const other = await startUnanswered();
    const reader = new ForeignReader();
    const bytes = new Uint8Array(4096);
    expect(reader.readMemory(pid, pages, 1, bytes)).toBe(4096);
    const before = performance.now();
    expect(reader.readMemory(pid, pages + 4096, 1, bytes)).toBe(0);
    expect(performance.now() - before).toBeLessThan(1000);
    expect(reader.stats).toMatchObject({ timedOut: 1, refused: 0 });
    // it is left alone for a while
    expect(reader.readMemory(pid, pages, 1, bytes)).toBe(0);
    expect(reader.stats).toMatchObject({ timedOut: 1, refused: 1 });
    expect(reader.readMemory(other.pid, other.pages, 1, bytes)).toBe(4096);
    expect(reader.readFile(other.pid, 'maps', 1 << 20)!.toString()).toBe(
      readFileSync(`/proc/${other.pid}/maps`, 'latin1'),
    );
    // a file server that ends lets go of whoever waited for it
    children[0]!.kill('SIGKILL');
    await vi.waitFor(() => expect(reader.stats.stuck).toBe(0), 10_000);
    reader.close();
  },
);

it.skipIf(missingRights)(
  'a file whose end never comes is given up, while others are opened',
  async (context) => {
    const { pid, pages, directory } = await startUnanswered();
    if (pages === 0) context.skip(NO_FUSE);
    const identityOf = ({ ino, size, ctimeNs, dev }: BigIntStats): FileIdentity => ({
      inode: ino,
      size,
      ctimeNs,
      device: kernelDevice(dev),
    });
    const files = new ForeignFiles();
    const path = `/proc/${pid}/root${directory}/file`;
    const hanging = openVerified(path, identityOf(statSync(path, { bigint: true })), files);
    const others = Array.from({ length: 8 }, () =>
      openVerified('/bin/sh', identityOf(statSync('/bin/sh', { bigint: true })), files),
    );
    for (const other of await Promise.all(others)) {
      expect(other.kind).toBe('opened');
      if (other.kind === 'opened') closeSync(other.fd);
    }
    expect((await hanging).kind).toBe('unanswered');
  },
);

it.skipIf(missingRights)(
  'a /tmp that does not answer costs its process the names of its JIT code, and nobody else',
  async (context) => {
    const hanging = await startUnanswered({ directory: '/tmp' });
    if (hanging.pages === 0) context.skip(NO_FUSE);
    const other = spawn('sleep', ['100']);
    children.push(other);
    await once(other, 'spawn');
    const map = `/tmp/perf-${other.pid}.map`;
    writeFileSync(map, '1000 10 one\n');
    const files = new ForeignFiles();
    const frames = new JitFrames({ files });
    const frameOf = (pid: Pid) => frames.frameOf({ pid, execId: 1, startBoottimeNs: startOf(pid) }, 0x1000);
    try {
      const [late, named] = [frameOf(hanging.pid), frameOf(toPid(other.pid!))];
      await vi.waitFor(async () => {
        await frames.symbolizeFrames();
        expect(named.lines[0]?.function).toBe('one');
      }, 10_000);
      expect(late.lines).toEqual([]);
      expect(files.stats).toMatchObject({ filesTimedOut: 1, filesFailed: 0 });
      // what it has waits for nobody
      const before = performance.now();
      await frames.symbolizeFrames();
      expect(performance.now() - before).toBeLessThan(500);
    } finally {
      rmSync(map);
      await frames.stop();
      children[0]!.kill('SIGKILL');
      await vi.waitFor(() => expect(files.stats.filesStuck).toBe(0), 10_000);
      files.close();
    }
  },
);

it.skipIf(missingRights)('a user whose mounts hang does not end reading for others', async (context) => {
  const ofUser = await Promise.all(
    Array.from({ length: 3 }, () => startUnanswered({ directory: '/tmp', user: 12345 })),
  );
  if (ofUser.some(({ pages }) => pages === 0)) context.skip(NO_FUSE);
  const other = await startUnanswered({ directory: '/tmp', user: 12346 });
  let clock = 0;
  // whoever did not answer is forgiven at once: the readers that hang are what counts
  const penalties = new Penalties({
    now: () => {
      clock += 3_600_000;
      return clock;
    },
  });
  const reader = new ForeignReader({ penalties });
  const bytes = new Uint8Array(4096);
  for (const { pid, pages } of ofUser) expect(reader.readMemory(pid, pages + 4096, 1, bytes)).toBe(0);
  expect(reader.stats).toMatchObject({ timedOut: 2, refused: 1, overloaded: 0, stuck: 2 });
  expect(reader.readMemory(other.pid, other.pages, 1, bytes)).toBe(4096);
  for (const child of children) child.kill('SIGKILL');
  await vi.waitFor(() => expect(reader.stats.stuck).toBe(0), 10_000);
  reader.close();
});
