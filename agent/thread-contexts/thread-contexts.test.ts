import { describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { ForeignFiles } from '../processes/foreign-files.ts';
import type { ForeignReader } from '../processes/foreign-reader.ts';
import type { ContextValue } from '../processes/process-context.ts';
import { THREAD_CONTEXT, ThreadContextKind } from '../records/records.gen.ts';
import type { ProcessIdentity } from '../records/records.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import type { Borrower, WorkerProcess } from '../workers/worker-process.ts';
import { ThreadContexts } from './thread-contexts.ts';
import type { FoundVariable } from './variable-requests.ts';

const PROCESS: ProcessIdentity = { pid: toPid(7), execId: 1, startBoottimeNs: 5n };
const MAPS = '1000-2000 r-xp 00000000 08:01 9 /usr/bin/x\n3000-4000 r-xp 00001000 08:01 8 /usr/lib/libx.so\n';
const FOUND: FoundVariable = {
  variable: { kind: 'static', offset: -16, size: 8 },
  codeAddress: 0,
  isMusl: false,
};

const context = (keys: string[], version = 'tlsdesc_v1') => ({
  attributes: new Map<string, ContextValue>([
    ['threadlocal.schema_version', version],
    ['threadlocal.attribute_key_map', keys],
  ]),
});

/** Closing it does nothing. */
const NO_SUCH_FD = 2 ** 30;

/** What came to BPF's map, in order; `answers`: the worker's, file by file, the last one again and again. */
function start(...answers: (FoundVariable | undefined)[]) {
  const log: string[] = [];
  const entries: Buffer[] = [];
  let asked = 0;
  const worker = {
    post({ id }: { id: number }) {
      queueMicrotask(() => borrower?.onReply({ id, answer: answers[Math.min(asked++, answers.length - 1)] }));
    },
  } as unknown as WorkerProcess;
  let borrower: Borrower | undefined;
  const workers = {
    lend: (_kind: string, borrow: (worker: WorkerProcess) => Borrower) => {
      queueMicrotask(() => {
        borrower = borrow(worker);
      });
      return () => {};
    },
    giveBack: () => {},
  } as unknown as WorkerPool;
  let inode = 0n;
  const contexts = new ThreadContexts({
    workers,
    reader: { readFile: () => Buffer.from(MAPS) } as unknown as ForeignReader,
    files: {
      newSession: () => 1,
      lookAt: async () => ({ fd: NO_SUCH_FD, dev: 1n, ino: inode++, ctimeNs: 1n, mtimeNs: 1n }),
    } as unknown as ForeignFiles,
    tracer: {
      samplers: { add: async () => true },
      attachments: {
        publish: (_part, { pid }, entry) => {
          log.push(`publish ${pid}`);
          entries.push(entry);
          return true;
        },
        withdraw: (_part, { pid }) => void log.push(`withdraw ${pid}`),
      },
    },
  });
  return { contexts, log, entries };
}

/** All that can happen without time going by. */
const settle = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

describe('thread contexts', () => {
  it('are read in processes that have the variable, until they end', async () => {
    const { contexts, log, entries } = start(FOUND);
    contexts.onContext(PROCESS, context(['a', 'b']));
    await settle();
    expect(log).toEqual(['publish 7']);
    expect(entries[0]!.readBigInt64LE(THREAD_CONTEXT.offset)).toBe(-16n);
    expect(entries[0]![THREAD_CONTEXT.kind]).toBe(ThreadContextKind.POINTER);
    expect(contexts.keysOf(PROCESS.pid).names).toEqual(['a', 'b']);
    expect(contexts.stats.processes).toBe(1);
    contexts.onExit(PROCESS);
    expect(log).toEqual(['publish 7', 'withdraw 7']);
    expect(contexts.keysOf(PROCESS.pid).names).toEqual([]);
    expect(contexts.stats.processes).toBe(0);
  });

  it('stay where they are when keys are added, which are others then', async () => {
    const { contexts, log } = start(FOUND);
    contexts.onContext(PROCESS, context(['a']));
    await settle();
    const { id } = contexts.keysOf(PROCESS.pid);
    contexts.onContext(PROCESS, context(['a', 'b']));
    await settle();
    expect(log).toEqual(['publish 7']);
    expect(contexts.keysOf(PROCESS.pid)).toMatchObject({ names: ['a', 'b'] });
    expect(contexts.keysOf(PROCESS.pid).id).not.toBe(id);
  });

  it('go where the process says no more that it has some', async () => {
    const { contexts, log } = start(FOUND);
    contexts.onContext(PROCESS, context([]));
    await settle();
    contexts.onContext(PROCESS, context([], 'another'));
    expect(log).toEqual(['publish 7', 'withdraw 7']);
  });

  it('are not read where no file has the variable, or one of another size', async () => {
    const { contexts, log } = start(undefined, {
      ...FOUND,
      variable: { kind: 'static', offset: -16, size: 4 },
    });
    contexts.onContext(PROCESS, context([]));
    await settle();
    expect(log).toEqual([]);
    await contexts.stop();
  });
});
