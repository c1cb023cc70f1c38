/** Decodes the records of the BPF ring buffer: layouts in records.gen.ts, meanings in ebpf/records.h. */
import { LRUCache } from 'lru-cache';
import type { FileKey, Pid } from '../../common/base/brand.ts';
import { toFileKey, toPid } from '../../common/base/brand.ts';
import { NO_OPTIONS } from '../../common/base/lru-options.ts';
import { EF_PROCESS_NO_FILE, EXIT, FILE, FUNCTION, PROCESS, RUNTIME_DETECTED } from './records.gen.ts';

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
  comm: string;
  /** '' where there is none, or it can't be read. */
  executablePath: string;
  /** A kernel thread has none, nor has a process that is about to be gone. */
  hasExecutable: boolean;
  /** Path in the cgroup v2 hierarchy, else the deepest of cgroup v1; '/' for the root. */
  cgroupPath: string;
}

export interface ExitRecord extends ProcessIdentity {
  ktimeNs: bigint;
}

/** A runtime was detected that user space has to attach to. */
export interface RuntimeRecord extends ProcessIdentity {
  /** enum ef_runtime. */
  runtime: number;
  /** Of the runtime's file; undefined: what was seen is code that no file backs. */
  key: FileKey | undefined;
  /** Address at which offset 0 of that file would be. */
  base: number;
  /** It was attached to, and lacks something all the same. */
  isAttached: boolean;
}

/** What a function of a runtime is called, read at a sample that has it. */
export interface FunctionRecord extends ProcessIdentity {
  /** Enum ef_frame_kind of its frames. */
  frameKind: number;
  /** As the runtime numbers its kinds of functions. */
  kind: number;
  /** Its frames have this operand, and this low half of their second word. */
  operand: number;
  cookie: number;
  /** '' where there is none. */
  className: string;
  name: string;
  file: string;
  firstLine: number;
  lastLine: number;
}

export const toKey = (value: bigint): FileKey => toFileKey(value.toString(16).padStart(16, '0'));

/** A NUL-terminated string of at most `size` bytes. */
export function readComm(buffer: Buffer, offset: number, size = 16): string {
  let end = offset;
  while (end < offset + size && buffer[end] !== 0) end++;
  return buffer.toString('utf8', offset, end);
}

/** Paths by their components as they came: most processes run one of few programs, in one of few cgroups. */
const paths = new LRUCache<string, string>({ max: 512 });

/** Components that came leaf first, each NUL-terminated. */
function readPath(buffer: Buffer, offset: number, bytes: number): string {
  if (bytes === 0) return '';
  const components = buffer.toString('utf8', offset, offset + bytes);
  let path = paths.get(components, NO_OPTIONS);
  if (path === undefined) {
    const parts = components.split('\0');
    if (parts.at(-1) === '') parts.pop();
    path = `/${parts.reverse().join('/')}`;
    paths.set(components, path);
  }
  return path;
}

/** Buffer's own reader makes four BigInts on the way to one. */
let view: DataView = new DataView(new ArrayBuffer(0));
export function readU64(buffer: Buffer, at: number): bigint {
  if (view.buffer !== buffer.buffer) view = new DataView(buffer.buffer);
  return view.getBigUint64(buffer.byteOffset + at, true);
}

export function readProcessRecord(buffer: Buffer, at: number, size: number): ProcessRecord {
  const room = Math.max(0, size - PROCESS.names);
  const pathBytes = Math.min(buffer.readUInt16LE(at + PROCESS.pathBytes), room);
  const cgroupBytes = Math.min(buffer.readUInt16LE(at + PROCESS.cgroupBytes), room - pathBytes);
  return {
    pid: toPid(buffer.readUInt32LE(at + PROCESS.processTgid)),
    execId: buffer.readUInt32LE(at + PROCESS.processExecId),
    startBoottimeNs: readU64(buffer, at + PROCESS.processStartBoottimeNs),
    parentPid: toPid(buffer.readUInt32LE(at + PROCESS.parentTgid)),
    uid: buffer.readUInt32LE(at + PROCESS.uid),
    ktimeNs: readU64(buffer, at + PROCESS.ktimeNs),
    comm: readComm(buffer, at + PROCESS.comm),
    executablePath: readPath(buffer, at + PROCESS.names, pathBytes),
    hasExecutable: (buffer.readUInt16LE(at + PROCESS.flags) & EF_PROCESS_NO_FILE) === 0,
    cgroupPath: readPath(buffer, at + PROCESS.names + pathBytes, cgroupBytes) || '/',
  };
}

export function readExitRecord(buffer: Buffer, at: number): ExitRecord {
  return {
    pid: toPid(buffer.readUInt32LE(at + EXIT.processTgid)),
    execId: buffer.readUInt32LE(at + EXIT.processExecId),
    startBoottimeNs: readU64(buffer, at + EXIT.processStartBoottimeNs),
    ktimeNs: readU64(buffer, at + EXIT.ktimeNs),
  };
}

export function readRuntimeRecord(buffer: Buffer, at: number): RuntimeRecord {
  const key = readU64(buffer, at + RUNTIME_DETECTED.key);
  return {
    pid: toPid(buffer.readUInt32LE(at + RUNTIME_DETECTED.processTgid)),
    execId: buffer.readUInt32LE(at + RUNTIME_DETECTED.processExecId),
    startBoottimeNs: readU64(buffer, at + RUNTIME_DETECTED.processStartBoottimeNs),
    runtime: buffer.readUInt32LE(at + RUNTIME_DETECTED.runtime),
    key: key === 0n ? undefined : toKey(key),
    base: Number(readU64(buffer, at + RUNTIME_DETECTED.base)),
    isAttached: buffer.readUInt16LE(at + RUNTIME_DETECTED.isAttached) !== 0,
  };
}

export function readFunctionRecord(buffer: Buffer, at: number, size: number): FunctionRecord {
  const classBytes = buffer.readUInt16LE(at + FUNCTION.classBytes);
  const nameBytes = buffer.readUInt16LE(at + FUNCTION.nameBytes);
  const texts = at + FUNCTION.texts;
  const textAt = (from: number, bytes: number): string =>
    readComm(buffer, from, Math.max(0, Math.min(bytes, at + size - from)));
  return {
    pid: toPid(buffer.readUInt32LE(at + FUNCTION.processTgid)),
    execId: buffer.readUInt32LE(at + FUNCTION.processExecId),
    startBoottimeNs: readU64(buffer, at + FUNCTION.processStartBoottimeNs),
    frameKind: buffer.readUInt8(at + FUNCTION.frameKind),
    kind: buffer.readUInt8(at + FUNCTION.kind),
    operand: Number(readU64(buffer, at + FUNCTION.operand)),
    cookie: buffer.readUInt32LE(at + FUNCTION.cookie),
    className: textAt(texts, classBytes),
    name: textAt(texts + classBytes, nameBytes),
    file: textAt(texts + classBytes + nameBytes, buffer.readUInt16LE(at + FUNCTION.fileBytes)),
    firstLine: buffer.readUInt32LE(at + FUNCTION.firstLine),
    lastLine: buffer.readUInt32LE(at + FUNCTION.lastLine),
  };
}

export function readFileRecord(buffer: Buffer, at: number, size: number): FileRecord {
  const pathBytes = Math.min(buffer.readUInt16LE(at + FILE.pathBytes), Math.max(0, size - FILE.path));
  return {
    key: toKey(readU64(buffer, at + FILE.key)),
    pid: toPid(buffer.readUInt32LE(at + FILE.tgid)),
    inode: readU64(buffer, at + FILE.inode),
    size: readU64(buffer, at + FILE.size),
    ctimeNs: readU64(buffer, at + FILE.ctimeNs),
    device: buffer.readUInt32LE(at + FILE.device),
    generation: buffer.readUInt32LE(at + FILE.generation),
    vmaStart: readU64(buffer, at + FILE.vmaStart),
    vmaEnd: readU64(buffer, at + FILE.vmaEnd),
    vmaOffset: readU64(buffer, at + FILE.vmaOffset),
    path: readPath(buffer, at + FILE.path, pathBytes),
  };
}

/** Which table holds for executable memory of a process: struct ef_code. */
export interface ProcessCodeEntry {
  process: ProcessIdentity;
  /** Where the memory begins. */
  start: number;
  key: FileKey;
  /** Added to an address it gives the offset in the file of that key. */
  delta: number;
  isJit: boolean;
}
