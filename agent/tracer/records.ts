/** Decodes the records of the BPF ring buffer: layouts in records.gen.ts, meanings in ebpf/records.h. */
import type { FileKey, Pid } from '../../common/base/brand.ts';
import { toFileKey, toPid } from '../../common/base/brand.ts';
import { EF_TRACE_OF_PROCESS, EXIT, FILE, PROCESS, TRACE } from './records.gen.ts';

export interface FileRecord {
  key: FileKey;
  pid: Pid;
  inode: bigint;
  size: bigint;
  ctimeNs: bigint;
  /** The kernel's encoding: major << 20 | minor. */
  device: number;
  generation: number;
  vmaStart: bigint;
  vmaEnd: bigint;
  vmaOffset: bigint;
  /** As the kernel sees it: relative to the mount's own root where that is hidden from us. */
  path: string;
}

/** Identity of one execution: an exec or a reused PID makes another. */
export interface ProcessIdentity {
  pid: Pid;
  execId: number;
  startBoottimeNs: bigint;
}

export interface ProcessRecord extends ProcessIdentity {
  parentPid: Pid;
  uid: number;
  ktimeNs: bigint;
  cgroupId: bigint;
  exeFileKey: FileKey;
  comm: string;
  /** '' for a kernel thread. */
  executablePath: string;
  /** Path in the cgroup v2 hierarchy, '/' for the root. */
  cgroupPath: string;
}

export interface ExitRecord extends ProcessIdentity {
  ktimeNs: bigint;
}

/** The identity is that of the process in which the trace was met first. */
export interface TraceRecord extends ProcessIdentity {
  hash: bigint;
  kernelFrames: number;
  userFrames: number;
  /** Kernel addresses, then the words of the user frames: see ebpf/records.h. */
  words: BigUint64Array;
  /** It has frames that mean something in this process only, and that the process has the names of. */
  isOfProcess: boolean;
}

export const toKey = (value: bigint): FileKey => toFileKey(value.toString(16).padStart(16, '0'));

/** A NUL-terminated string of at most `size` bytes. */
export function readComm(buffer: Buffer, offset: number, size = 16): string {
  let end = offset;
  while (end < offset + size && buffer[end] !== 0) end++;
  return buffer.toString('utf8', offset, end);
}

/** Components that came leaf first, each NUL-terminated. */
function readPath(buffer: Buffer, offset: number, bytes: number): string {
  if (bytes === 0) return '';
  const parts = buffer.toString('utf8', offset, offset + bytes).split('\0');
  if (parts.at(-1) === '') parts.pop();
  return `/${parts.reverse().join('/')}`;
}

function readIdentity(
  buffer: Buffer,
  at: number,
  layout: typeof PROCESS | typeof EXIT | typeof TRACE,
): ProcessIdentity {
  return {
    pid: toPid(buffer.readUInt32LE(at + layout.processTgid)),
    execId: buffer.readUInt32LE(at + layout.processExecId),
    startBoottimeNs: buffer.readBigUInt64LE(at + layout.processStartBoottimeNs),
  };
}

export function readProcessRecord(buffer: Buffer, at: number, size: number): ProcessRecord {
  const room = Math.max(0, size - PROCESS.names);
  const pathBytes = Math.min(buffer.readUInt16LE(at + PROCESS.pathBytes), room);
  const cgroupBytes = Math.min(buffer.readUInt16LE(at + PROCESS.cgroupBytes), room - pathBytes);
  return {
    ...readIdentity(buffer, at, PROCESS),
    parentPid: toPid(buffer.readUInt32LE(at + PROCESS.parentTgid)),
    uid: buffer.readUInt32LE(at + PROCESS.uid),
    ktimeNs: buffer.readBigUInt64LE(at + PROCESS.ktimeNs),
    cgroupId: buffer.readBigUInt64LE(at + PROCESS.cgroupId),
    exeFileKey: toKey(buffer.readBigUInt64LE(at + PROCESS.exeFileKey)),
    comm: readComm(buffer, at + PROCESS.comm),
    executablePath: readPath(buffer, at + PROCESS.names, pathBytes),
    cgroupPath: readPath(buffer, at + PROCESS.names + pathBytes, cgroupBytes) || '/',
  };
}

export function readExitRecord(buffer: Buffer, at: number): ExitRecord {
  return { ...readIdentity(buffer, at, EXIT), ktimeNs: buffer.readBigUInt64LE(at + EXIT.ktimeNs) };
}

export function readFileRecord(buffer: Buffer, at: number, size: number): FileRecord {
  const pathBytes = Math.min(buffer.readUInt16LE(at + FILE.pathBytes), Math.max(0, size - FILE.path));
  return {
    key: toKey(buffer.readBigUInt64LE(at + FILE.key)),
    pid: toPid(buffer.readUInt32LE(at + FILE.tgid)),
    inode: buffer.readBigUInt64LE(at + FILE.inode),
    size: buffer.readBigUInt64LE(at + FILE.size),
    ctimeNs: buffer.readBigUInt64LE(at + FILE.ctimeNs),
    device: buffer.readUInt32LE(at + FILE.device),
    generation: buffer.readUInt32LE(at + FILE.generation),
    vmaStart: buffer.readBigUInt64LE(at + FILE.vmaStart),
    vmaEnd: buffer.readBigUInt64LE(at + FILE.vmaEnd),
    vmaOffset: buffer.readBigUInt64LE(at + FILE.vmaOffset),
    path: readPath(buffer, at + FILE.path, pathBytes),
  };
}

export function readTraceRecord(buffer: Buffer, at: number, size: number): TraceRecord {
  const room = Math.max(0, Math.floor((size - TRACE.frames) / 8));
  const count = Math.min(buffer.readUInt16LE(at + TRACE.words), room);
  // one copy of the bytes: a BigInt a word would cost more than the rest of the trace
  const words = new BigUint64Array(count);
  new Uint8Array(words.buffer).set(buffer.subarray(at + TRACE.frames, at + TRACE.frames + count * 8));
  return {
    ...readIdentity(buffer, at, TRACE),
    hash: buffer.readBigUInt64LE(at + TRACE.traceHash),
    kernelFrames: Math.min(buffer.readUInt16LE(at + TRACE.kernelFrames), count),
    userFrames: buffer.readUInt16LE(at + TRACE.userFrames),
    words,
    isOfProcess: (buffer.readUInt32LE(at + TRACE.flags) & EF_TRACE_OF_PROCESS) !== 0,
  };
}
