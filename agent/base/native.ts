/** The types of the addon (addon/*.cc). It holds no policy: what a call means is decided in the callers. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { packageRoot } from './package-root.ts';

export interface NativeBpfObject {
  /** On another thread; no other call until it is settled. */
  load(): Promise<void>;
  loadSync(): void;
  mapFd(name: string): number;
  programFd(name: string): number;
  attachRawTracepoint(program: string, tracepoint: string): void;
  /** Where the program's section says. */
  attach(program: string): void;
  /**
   * At an offset of a file, in all processes; `semaphore` is the offset of a counter that the kernel raises, 0: none;
   * `isAtReturn`: when the function that begins there returns.
   */
  attachUprobe(program: string, path: string, offset: number, semaphore: number, isAtReturn: boolean): void;
  /** The same for several places by one link, of an object with `uprobeMulti`; at none of them where it throws. */
  attachUprobes(
    program: string,
    path: string,
    offsets: BigUint64Array,
    semaphores: BigUint64Array,
    isAtReturn: boolean,
  ): void;
  /** All of its programs, from everywhere. */
  detach(): void;
  /** Before loading: keep what the verifier says of each program. */
  askForStats(): void;
  /** The verifier's log by program; empty unless it was asked for. */
  verifierStats(): Record<string, string>;
  close(): void;
}

export interface NativeRing {
  /** Copies records into `buffer` (at least 64 KiB): u32 size, u32 zero, bytes, padding to 8. Returns bytes. */
  drain(buffer: Buffer): number;
  close(): void;
}

/** Features of the running kernel, found by probing it. */
export interface KernelFeatures {
  rdonlyCast: boolean;
  /** BPF may read kernel memory by a helper: not where the kernel is locked down for confidentiality. */
  kernelReads: boolean;
  taskPtRegs: boolean;
  /** bpf_task_work (6.18), by the name that it has from 7.0 on, and by the one that came first. */
  taskWork: boolean;
  taskWorkImpl: boolean;
  pageBytes: number;
  /** Bits of a return address that are not a signature of it. */
  codeAddressMask: bigint;
}

/** See agent/processes/foreign-reader.ts. Starts the executable when it is needed. */
export interface NativeReader {
  /**
   * Bytes, or a negative errno: ETIMEDOUT where a reader had to be killed, EAGAIN where too many of them are stuck, EBUSY
   * where some are for this process's user, EPIPE where there is none.
   */
  readMemory(pid: number, address: number, session: number, buffer: Uint8Array): number;
  /**
   * Pages of 4 KiB, at most 16, one behind the other in `buffer`: a bit for each that was read, the first one's the
   * lowest, or a negative errno as above.
   */
  readPages(pid: number, addresses: Float64Array, session: number, buffer: Uint8Array): number;
  /** A file of the process's folder in /proc, up to `maxBytes`. */
  readFile(pid: number, name: string, maxBytes: number): Buffer | number;
  /** Readers that were killed and that the kernel does not let go yet. */
  stuck(): number;
  /** PID of the reader process; 0 if there is none. */
  pid(): number;
  close(): void;
}

/** The file at a path. */
export interface NativeFile {
  /** Open for reading, if it is a regular file and was to be opened; else -1. */
  fd: number;
  mode: number;
  uid: number;
  gid: number;
  links: number;
  dev: bigint;
  ino: bigint;
  size: bigint;
  ctimeNs: bigint;
  mtimeNs: bigint;
}

/** See agent/processes/foreign-files.ts and addon/reader.cc. Answers that are numbers are as {@link NativeReader}'s. */
export interface NativeAsyncReader {
  lookAt(pid: number, device: number, path: string, open: boolean): Promise<NativeFile | number>;
  openBelow(pid: number, root: string, path: string): Promise<NativeFile | number>;
  readMemory(pid: number, address: number, length: number, session: number): Promise<Buffer | number>;
  readFile(pid: number, name: string, maxBytes: number): Promise<Buffer | number>;
  read(pid: number, fd: number, offset: number, length: number): Promise<Buffer | number>;
  stat(pid: number, fd: number): Promise<NativeFile | number>;
  copyPages(
    pid: number,
    device: number,
    directory: string,
    fd: number,
    size: number,
    ranges: Float64Array,
  ): Promise<NativeFile | number>;
  stuck(): number;
  close(): void;
}

/** Type and config are those of perf_event_open(2). */
export interface PerfEvent {
  type: number;
  config: number;
  /** Events, or nanoseconds of a clock, between two samples; 0: see frequency. */
  period: number;
  /** Samples a second; the kernel follows with the period. */
  frequency: number;
  /** Also where the CPU is idle. */
  includeIdle: boolean;
}

/** A number that a raw tracepoint is called with. */
export interface TracepointField {
  /** Number of the argument. */
  argument: number;
  /** Of the member that the argument points to; -1: the argument itself. */
  offset: number;
  bytes: number;
  isSigned: boolean;
}

/** Errors of these calls carry `code` (such as 'EPERM'), `errno`, and libbpf's last lines in `log`. */
export interface Native {
  BpfObject: new (
    path: string,
    options: {
      rodata: Buffer;
      maxEntries: Record<string, number>;
      /** The programs to load. */
      programs: readonly string[];
      /** Maps that the loaded code never reaches: they are not made. */
      skipMaps: readonly string[];
      /** Maps that these objects have, by name, are used in place of new ones. */
      share: readonly NativeBpfObject[];
      /** Programs for user code are loaded as such links take them. */
      uprobeMulti: boolean;
      kernelReads: boolean;
      /** File in which alone the kernel's types are looked for; '': in those of its modules, too. */
      kernelTypes: string;
    },
  ) => NativeBpfObject;
  AsyncReader: new (executable: string, proc: string) => NativeAsyncReader;
  Reader: new (executable: string, proc: string) => NativeReader;
  Ring: new (mapFd: number, onWake: () => void) => NativeRing;
  mapLookup(fd: number, key: Buffer, valueBytes: number): Buffer | undefined;
  mapUpdate(fd: number, key: Buffer, value: Buffer, flags: number): void;
  mapDelete(fd: number, key: Buffer): boolean;
  mapNextKey(fd: number, key: Buffer | undefined, keyBytes: number): Buffer | undefined;
  /** All entries of a hash table, each as its key and its value; such as come or go meanwhile may be missing. */
  mapReadAll(fd: number, keyBytes: number, valueBytes: number): Buffer;
  /** The values of an array that was made with BPF_F_MMAPABLE; BPF writes to them at the same time. */
  mapMemory(fd: number, bytes: number): ArrayBuffer;
  sumPerCpu(fd: number, first: number, entries: number): Float64Array;
  installTable(outerFd: number, index: number, image: Buffer, blockBytes: number): Promise<void>;
  /** All at once: each waits for the kernel, together hardly longer than one. */
  removeTables(outerFd: number, indices: Uint32Array): Promise<void>;
  /** By ARGUMENT or ARGUMENT.MEMBER, out of the kernel's BTF; undefined where there is none, or it is not a number. */
  tracepointField(tracepoint: string, field: string): TracepointField | undefined;
  /** Of all that the kernel has, but for its modules'. */
  tracepointNames(): string[];
  /** Names of the arguments; empty where there is no such tracepoint. */
  tracepointFields(tracepoint: string): string[];
  /** The descriptor of a disabled event that runs the program; throws what the kernel says. */
  perfOpen(cpu: number, event: PerfEvent, programFd: number): number;
  perfEnable(fds: number[], gapNs: number): Promise<number>;
  perfDisable(fds: number[]): void;
  /** How long the event has been enabled; it stands still for good once its CPU has been off. -1: the kernel does not say. */
  perfEnabledNs(fd: number): number;
  closeFd(fd: number): void;
  /**
   * Leaves every thread of this process, and what it starts, with those capabilities at most (bit n for capability n)
   * and without new privileges, for good. `bounding` can be cut with CAP_SETPCAP only; without that it stays.
   */
  dropRights(permitted: bigint, bounding: bigint): void;
  probeFeatures(): KernelFeatures;
  /** One link can set a program's probes in user code at several places (Linux 6.6); found by asking the kernel. */
  hasUprobeMulti(): boolean;
  /**
   * Looks a path up as if `rootFd` (a directory) were "/". A descriptor that can be asked what it is and no more
   * (O_PATH), or a negative errno.
   */
  openInRoot(rootFd: number, path: string): number;
  /**
   * The same, where nobody but uid 0, the owner of `rootFd` and those who may write to a file of `uid`, `gid` and `mode`
   * can change what the path leads to: else -EPERM. `uid` 0xffffffff: whoever. -EACCES where `reader` (0: all) or
   * `readerGroup` (0xffffffff: none) may not enter a directory on the way.
   */
  openBelow(
    rootFd: number,
    path: string,
    owner: { uid: number; gid: number; mode: number; reader: number; readerGroup: number },
  ): number;
  /** Tells a process's root apart from others, by mount and inode; undefined where there is none. */
  rootIdentity(path: string): string | undefined;
  /** Maps the first page of a file, for reading; its address. */
  mapFile(fd: number): bigint;
  unmapFile(address: bigint): void;
  /** Runs a program of the kind raw tracepoint once, in this thread. */
  runProgram(programFd: number, argument: bigint): void;
  /** Runs the program of an iterator over all that it iterates. */
  runIterator(programFd: number): void;
  /** The lowest ID of a BPF program above `after`, 0 where there is none, or a negative errno. */
  nextBpfProgram(after: number): number;
  /** The machine code of a BPF program, its first function first; undefined where it is gone. */
  bpfProgramFunctions(id: number, named: boolean): NativeBpfFunction[] | undefined;
  /** Makes V8 collect this thread's garbage in steps of some milliseconds, in the seconds that follow. */
  beginCollection(): void;
  /** Gives the pages that malloc keeps free back to the system, a millisecond's work; only glibc can. */
  releaseFreeMemory(): void;
  /**
   * Unmaps the pages of executables that this process only reads, some milliseconds' work; what is needed is mapped
   * again as it is touched. Returns bytes.
   */
  releaseCode(): number;
  /** CLOCK_MONOTONIC, the clock of the records. */
  monotonicNs(): bigint;
  /** CPU time of this thread. */
  threadCpuMicros(): number;
  /** CPU time of a process; undefined where there is none. */
  processCpuMicros(pid: number): number | undefined;
  /** CPU time of this process, of its children that have ended, and of those that are named. */
  familyCpuMicros(pids: readonly number[]): number;
  /** Two connected sockets, which keep messages apart. */
  socketPair(): [number, number];
  /** Never waits. */
  sendDescriptors(socket: number, fds: readonly number[]): void;
  /** Waits for so many. */
  receiveDescriptors(socket: number, count: number): number[];
  /**
   * Sends a request, with a descriptor unless that is negative, and waits for its answer, which has the length of
   * `answer`. The descriptor that came along, or -1.
   */
  ask(socket: number, request: Buffer, fd: number, answer: Buffer): number;
  /** To a Unix socket, "@" before an abstract name; never waits. 0, or a negative errno. */
  sendDatagram(path: string, text: string): number;
  /** Another descriptor of the same open file. */
  duplicate(fd: number): number;
  /** Leaves this process no system call but those that compute on what it has open; 0, or the error number. */
  confine(): number;
  /** Nanoseconds to add to CLOCK_MONOTONIC for Unix time, as of now. */
  unixOffsetNs(): bigint;
}

export interface NativeBpfFunction {
  /** 0: not shown, or interpreted. */
  start: bigint;
  bytes: number;
  /** As in kallsyms, if names are asked for: they are in the program's types, which cost more than all the rest. */
  name?: string;
}

let loaded: Native | undefined;

/** Of a process that can't open it where it lies. */
export function useNative(native: Native): void {
  loaded = native;
}

/** The addon can't be loaded: for whoever started everyframe, not for its authors. */
export class AddonError extends Error {
  override readonly name = 'AddonError';
  readonly problem: string;
  readonly fix: string;

  constructor(problem: string, fix: string) {
    super(`${problem}: ${fix}`);
    this.problem = problem;
    this.fix = fix;
  }
}

/** Packages of what it is linked against, by the library's name without its version: of Debian and Ubuntu, of Fedora. */
const PACKAGES: Readonly<Record<string, readonly [debian: string, fedora: string]>> = {
  libbpf: ['libbpf1', 'libbpf'],
  libelf: ['libelf1', 'elfutils-libelf'],
  libz: ['zlib1g', 'zlib'],
  'libstdc++': ['libstdc++6', 'libstdc++'],
  libgcc_s: ['libgcc-s1', 'libgcc'],
};
const SETUP = 'npm run setup';

/** What the dynamic linker says of the first library that it does not find. */
const MISSING = /^((lib[^:/]+?)\.so[^:/]*): cannot open shared object file/;

function explainUnloadable(path: string, message: string): AddonError {
  const [, file, library = ''] = MISSING.exec(message) ?? [];
  if (file === undefined)
    return new AddonError(`the addon ${path} can't be loaded: ${message}`, `build it again: ${SETUP}`);
  const problem = `the addon ${path} needs ${file}, which is not installed`;
  const [debian, fedora] = PACKAGES[library] ?? [];
  return debian === undefined
    ? new AddonError(problem, `install the package that has it, or run ${SETUP}`)
    : new AddonError(problem, `sudo apt-get install ${debian} (Fedora, RHEL: dnf install ${fedora})`);
}

/** @throws AddonError */
export function loadAddon(path: string): Native {
  if (!existsSync(path)) throw new AddonError(`the addon ${path} is not built`, SETUP);
  try {
    return createRequire(import.meta.url)(path) as Native;
  } catch (error) {
    throw explainUnloadable(path, (error as Error).message);
  }
}

/** @throws AddonError */
export function loadNative(): Native {
  loaded ??= loadAddon(join(packageRoot(), 'build/everyframe.node'));
  return loaded;
}
