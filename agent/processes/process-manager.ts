/**
 * The process manager: who was sampled. One entry an execution of a process, made from BPF's process record at
 * its first sample or exec, completed from /proc where something is missing, and kept until every trace that may
 * mention it is out.
 *
 * An execution is identified by (PID, exec ID, start time): the PID alone is reused, PID and start time stay
 * through an exec. Executions of one PID hang in one list, newest first; they end by exit, by the next exec, or
 * by the PID's next owner.
 */
import { LRUCache } from 'lru-cache';
import type { Pid } from '../../common/base/brand.ts';
import { NO_OPTIONS } from '../../common/base/lru-options.ts';
import { attributesText, readAttributes } from '../../common/profile/model/attributes.ts';
import { emptyProcess, type Process } from '../../common/profile/model/profile.ts';
import { isOfSample } from '../../common/profile/model/sample-attributes.ts';
import type { ExitRecord, ProcessIdentity, ProcessRecord } from '../records/records.ts';
import { type BootClock, createBootClock } from './boot-clock.ts';
import { type CgroupOwner, readCgroupOwner } from './cgroup-owner.ts';
import { mayRun, type ProcProcess, readProcProcess } from './proc-files.ts';
import { KERNEL_SERVICE, serviceNameOf } from './service-name.ts';

export interface ProcessManagerOptions {
  proc?: string;
  /** Executions kept, the dead ones that wait for their traces included. */
  maxProcesses?: number;
  clock?: BootClock;
}

interface Execution {
  execId: number;
  startBoottimeNs: bigint;
  /** CLOCK_MONOTONIC; undefined while it runs, as far as known. */
  endedKtimeNs: bigint | undefined;
  released: boolean;
  process: Process;
  older: Execution | undefined;
}

const DEFAULT_MAX_PROCESSES = 65_536;
/** A process that keeps on calling exec holds no more than this many of its earlier selves. */
const MAX_EXECUTIONS_A_PID = 16;
const MAX_CGROUPS = 2048;
const MAX_SERVICE_NAME = 256;
/** The kernel says it, or it is the machine's; service.name has a place of its own. */
const IS_KNOWN_BETTER =
  /^(?:service\.name|container\.id|(?:host|os)\..*|process\.(?:pid|parent_pid|creation\.time|executable\..*|command.*))$/;

export class ProcessManager {
  /** Counted since the start. */
  readonly stats = {
    /** Identities that a process record brought. */
    reported: 0,
    exited: 0,
    exitsUnknown: 0,
    /** Sampled identities without a record that /proc still knew. */
    readFromProc: 0,
    /** Sampled identities of which nothing but the PID is known: no record, and the process gone. */
    unidentified: 0,
    /** Left before their traces were out, because there were too many. */
    evicted: 0,
    released: 0,
  };
  readonly #proc: string;
  readonly #maxProcesses: number;
  readonly #clock: BootClock;
  readonly #byPid: LRUCache<number, { newest: Execution }>;
  readonly #owners = new LRUCache<string, CgroupOwner & { path: string }>({ max: MAX_CGROUPS });
  readonly #published = new WeakMap<Process, ReadonlyMap<string, string>>();
  /** Executions that ended, in the order in which that became known. */
  #ended: { pid: number; execution: Execution }[] = [];

  constructor(options: ProcessManagerOptions = {}) {
    this.#proc = options.proc ?? '/proc';
    this.#clock = options.clock ?? createBootClock(this.#proc);
    this.#maxProcesses = options.maxProcesses ?? DEFAULT_MAX_PROCESSES;
    // A bound on size, not on entries: with `max` the cache would allocate for all of them at once.
    this.#byPid = new LRUCache({
      maxSize: this.#maxProcesses,
      sizeCalculation: ({ newest }) => countExecutions(newest),
      dispose: ({ newest }, _pid, reason) => {
        if (reason !== 'evict') return;
        for (let e: Execution | undefined = newest; e; e = e.older) {
          e.released = true;
          this.stats.evicted++;
        }
      },
    });
  }

  /** Executions known. */
  get size(): number {
    return this.#byPid.calculatedSize;
  }

  onProcess(record: ProcessRecord): void {
    this.stats.reported++;
    const known = this.#find(record.pid, record.execId, record.startBoottimeNs);
    // on its way out it has no program any more: what was told while it had one holds
    if (known && !record.hasExecutable && known.process.executablePath !== '') return;
    const who = this.#describe(record);
    // The object stays the same: traces may already refer to it.
    if (known) Object.assign(known.process, who);
    else this.#add(record, who, record.ktimeNs);
  }

  onExit(record: ExitRecord): void {
    const execution = this.#find(record.pid, record.execId, record.startBoottimeNs);
    if (!execution) {
      this.stats.exitsUnknown++;
      return;
    }
    this.stats.exited++;
    this.#end(record.pid, execution, record.ktimeNs);
  }

  /** Who this is; the same object at every call while the execution is kept. */
  get(pid: Pid, execId: number, startBoottimeNs: bigint): Process {
    const known = this.#find(pid, execId, startBoottimeNs);
    if (known) return known.process;
    const identity = { pid, execId, startBoottimeNs };
    const newest = this.#byPid.get(pid, NO_OPTIONS)?.newest;
    // /proc is about the program that runs now, under the same PID and start time
    const hasPassed = newest !== undefined && isOlder(identity, newest);
    const found = hasPassed ? undefined : readProcProcess(this.#proc, pid, startBoottimeNs);
    if (found) this.stats.readFromProc++;
    else this.stats.unidentified++;
    const who = found ? this.#build(identity, found) : this.#unidentified(identity);
    return this.#add(identity, who, process.hrtime.bigint()).process;
  }

  /** Also where its exit was not told, or was forgotten since. */
  hasEnded(identity: ProcessIdentity): boolean {
    const { pid, execId, startBoottimeNs } = identity;
    const known = this.#find(pid, execId, startBoottimeNs);
    const newest = this.#byPid.get(pid, NO_OPTIONS)?.newest;
    if (known ? known.endedKtimeNs !== undefined : newest && isOlder(identity, newest)) return true;
    return !mayRun(this.#proc, pid, startBoottimeNs);
  }

  /** Says more of an execution, where it is kept: samples of it that go out from now on have the attribute. */
  noteAttribute(identity: ProcessIdentity, attribute: readonly [key: string, value: string]): void {
    const { pid, execId, startBoottimeNs } = identity;
    const process = this.get(pid, execId, startBoottimeNs);
    process.attributes = attributesText([...readAttributes(process.attributes ?? ''), attribute]);
  }

  /** What it says of itself, in place of what it said before; its samples that go out from now on have it. */
  noteResource(identity: ProcessIdentity, resource: ReadonlyMap<string, string>): void {
    const process = this.get(identity.pid, identity.execId, identity.startBoottimeNs);
    const published = new Map(
      [...resource].filter(([key]) => !IS_KNOWN_BETTER.test(key) && !isOfSample(key)),
    );
    const earlier = this.#published.get(process);
    const others = [...readAttributes(process.attributes ?? '')].filter(([key]) => !earlier?.has(key));
    process.attributes = attributesText([...others, ...published]);
    this.#published.set(process, published);
    const name = resource.get('service.name');
    if (name) process.serviceName = name.slice(0, MAX_SERVICE_NAME);
  }

  /** Every trace sampled before `ktimeNs` is out: executions that ended before are not needed any more. */
  releaseUntil(ktimeNs: bigint): void {
    let released = 0;
    for (const { pid, execution } of this.#ended) {
      if (execution.endedKtimeNs! >= ktimeNs) break;
      released++;
      if (!execution.released) this.#release(pid, execution);
    }
    if (released > 0) this.#ended = this.#ended.slice(released);
  }

  #find(pid: number, execId: number, startBoottimeNs: bigint): Execution | undefined {
    let execution = this.#byPid.get(pid, NO_OPTIONS)?.newest;
    while (execution && !(execution.execId === execId && execution.startBoottimeNs === startBoottimeNs)) {
      execution = execution.older;
    }
    return execution;
  }

  /**
   * Puts a new execution in front of those of its PID, unless samples of an older one came late. `ktimeNs`: when
   * the older one had ended at the latest, CLOCK_MONOTONIC.
   */
  #add(identity: ProcessIdentity, who: Process, ktimeNs: bigint): Execution {
    const { pid, execId, startBoottimeNs } = identity;
    const execution: Execution = {
      execId,
      startBoottimeNs,
      endedKtimeNs: undefined,
      released: false,
      process: who,
      older: undefined,
    };
    const newest = this.#byPid.get(pid)?.newest;
    if (newest && isOlder(execution, newest)) {
      execution.older = newest.older;
      newest.older = execution;
      this.#end(pid, execution, ktimeNs);
      this.#store(pid, newest);
    } else {
      execution.older = newest;
      if (newest) this.#end(pid, newest, ktimeNs);
      this.#store(pid, execution);
    }
    return execution;
  }

  #store(pid: number, newest: Execution): void {
    let last = newest;
    for (let i = 1; i < MAX_EXECUTIONS_A_PID && last.older; i++) last = last.older;
    for (let cut = last.older; cut; cut = cut.older) {
      cut.released = true;
      this.stats.evicted++;
    }
    last.older = undefined;
    this.#byPid.set(pid, { newest });
  }

  #end(pid: number, execution: Execution, ktimeNs: bigint): void {
    if (execution.endedKtimeNs !== undefined) return;
    execution.endedKtimeNs = ktimeNs;
    this.#ended.push({ pid, execution });
    // At most #maxProcesses of them are still held, so this happens once in that many ends.
    if (this.#ended.length > 2 * this.#maxProcesses) {
      this.#ended = this.#ended.filter((ended) => !ended.execution.released);
    }
  }

  #release(pid: number, execution: Execution): void {
    execution.released = true;
    this.stats.released++;
    const newest = this.#byPid.peek(pid)?.newest;
    if (!newest) return;
    if (newest === execution) {
      if (newest.older) this.#store(pid, newest.older);
      else this.#byPid.delete(pid);
      return;
    }
    let before: Execution | undefined = newest;
    while (before && before.older !== execution) before = before.older;
    if (before) before.older = execution.older;
    this.#store(pid, newest);
  }

  /** Facts from BPF's record; /proc is asked only for what BPF can't see. */
  #describe(record: ProcessRecord): Process {
    const { pid, comm, parentPid, startBoottimeNs, hasExecutable } = record;
    let { executablePath, cgroupPath } = record;
    if (executablePath === '' && hasExecutable) {
      const found = readProcProcess(this.#proc, pid, startBoottimeNs);
      executablePath = found?.executablePath ?? '';
      if (cgroupPath.length <= 1) cgroupPath = found?.cgroupPath || cgroupPath;
    }
    return this.#build(record, { comm, parentPid, executablePath, cgroupPath });
  }

  #build(identity: ProcessIdentity, facts: ProcProcess): Process {
    const owner = this.#ownerOf(facts.cgroupPath);
    const fileName = baseName(facts.executablePath);
    return {
      pid: identity.pid,
      parentPid: facts.parentPid,
      // A process that was first sampled while it exited has no executable any more.
      executableName: fileName || facts.comm,
      executablePath: facts.executablePath,
      commandName: facts.comm,
      containerId: owner.containerId,
      cgroupPath: owner.path,
      serviceName: isKernelThread(identity.pid, facts) ? KERNEL_SERVICE : serviceNameOf(owner, fileName),
      startUnixNano: this.#clock.toUnixNanos(identity.startBoottimeNs),
    };
  }

  #unidentified({ pid, startBoottimeNs }: ProcessIdentity): Process {
    const startUnixNano = this.#clock.toUnixNanos(startBoottimeNs);
    return { ...emptyProcess(), pid, startUnixNano, serviceName: serviceNameOf(undefined, '') };
  }

  /** One parse and one string a cgroup, not one a process. */
  #ownerOf(path: string): CgroupOwner & { path: string } {
    let owner = this.#owners.get(path);
    if (!owner) {
      owner = { path, ...readCgroupOwner(path) };
      this.#owners.set(path, owner);
    }
    return owner;
  }
}

/** Kernel threads have no executable and descend from kthreadd, which is PID 2; PID 0 is the idle task. */
const isKernelThread = (pid: number, { executablePath, parentPid }: ProcProcess): boolean =>
  executablePath === '' && (parentPid === 2 || pid === 2 || pid === 0);

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

type Order = Pick<ProcessIdentity, 'execId' | 'startBoottimeNs'>;

function isOlder(a: Order, b: Order): boolean {
  if (a.startBoottimeNs !== b.startBoottimeNs) return a.startBoottimeNs < b.startBoottimeNs;
  return a.execId < b.execId;
}

function countExecutions(newest: Execution): number {
  let count = 0;
  for (let e: Execution | undefined = newest; e; e = e.older) count++;
  return count;
}
