/** What BPF needs of an interpreter's file: struct ef_python of ebpf/records.h. */
import {
  PYTHON,
  PythonAccessKind,
  PythonBoundaryKind,
  PythonInstructionKind,
} from '../../records/records.gen.ts';
import { UnsupportedRuntime } from '../contract.ts';
import type { PythonBinary } from './detect-python.ts';
import type { ThreadAccess } from './thread-access.ts';

const INSTRUCTION = {
  bytes: PythonInstructionKind.BYTES,
  units: PythonInstructionKind.UNITS,
  pointer: PythonInstructionKind.POINTER,
} as const;
const BOUNDARY = {
  each: PythonBoundaryKind.EACH,
  entry: PythonBoundaryKind.ENTRY,
  owner: PythonBoundaryKind.OWNER,
} as const;
const RANGE_BYTES = 16;
/** ebpf/python/unwind.h: PYTHON_MAX_BYTES. */
const MAX_BYTES = 192;

/** Throws {@link UnsupportedRuntime} where an offset does not fit, as in a debug build. */
export function encodePython(python: PythonBinary): Buffer {
  const bytes = Buffer.alloc(PYTHON.bytes);
  const { layout, textBias } = python;
  for (const [i, { start, end }] of python.evalRanges.entries()) {
    bytes.writeBigUInt64LE(BigInt(start - textBias), PYTHON.ranges + i * RANGE_BYTES);
    bytes.writeBigUInt64LE(BigInt(end - start), PYTHON.ranges + i * RANGE_BYTES + 8);
  }
  encodeAccess(bytes, PYTHON.boundKind, python.bound, textBias);
  encodeAccess(bytes, PYTHON.currentKind, python.current, textBias);
  bytes.writeBigInt64LE(BigInt(python.codeType - textBias), PYTHON.codeType);
  encodeInterpreters(bytes, python);
  const frameOffsets = [
    layout.framePrevious,
    layout.frameCode,
    layout.frameInstruction,
    layout.frameBoundary,
  ];
  const codeOffsets = [
    layout.objectType,
    layout.codeFlags,
    layout.codeFirstLine,
    layout.codeFilename,
    layout.codeName,
    layout.codeLineTable,
  ];
  const members = {
    isMusl: Number(python.isMusl),
    hasKeyFlag: Number(python.minor >= 7),
    instruction: INSTRUCTION[layout.instruction],
    boundary: BOUNDARY[layout.boundary],
    isFrameInCframe: Number(layout.isFrameInCframe),
    codeTagMask: layout.codeTagMask,
    frameBytes: bytesFor([...frameOffsets, layout.frameThreadLocalIndex]),
    codeBytes: bytesFor(codeOffsets),
    threadFrame: layout.threadFrame,
    threadCframe: layout.threadCframe,
    cframeFrame: layout.cframeFrame,
    cframePrevious: layout.cframePrevious,
    framePrevious: layout.framePrevious,
    frameCode: layout.frameCode,
    frameInstruction: layout.frameInstruction,
    frameBoundary: layout.frameBoundary,
    frameThreadLocalIndex: layout.frameThreadLocalIndex,
    objectType: layout.objectType,
    codeFlags: layout.codeFlags,
    codeFirstLine: layout.codeFirstLine,
    codeFilename: layout.codeFilename,
    codeName: layout.codeName,
    codeLineTable: layout.codeLineTable,
    codeStart: layout.codeStart,
    codeThreadLocal: layout.codeThreadLocal,
    threadId: layout.threadId,
    threadNext: layout.threadNext,
    threadBaseFrame: layout.threadBaseFrame,
  };
  for (const [name, value] of Object.entries(members) as [keyof typeof members, number][]) {
    if (value > 255 || (name.endsWith('Bytes') && value > MAX_BYTES))
      throw new UnsupportedRuntime(`Python ${python.version}: ${name} is ${value}`);
    bytes.writeUInt8(value, PYTHON[name]);
  }
  return bytes;
}

/** Whole words that hold a member of up to 8 bytes at each offset. */
const bytesFor = (offsets: number[]): number => (Math.max(...offsets) & ~7) + 8;

/** Where the interpreters of a process are; they stay unknown where an offset does not fit. */
function encodeInterpreters(bytes: Buffer, { interpreters, layout, textBias }: PythonBinary): void {
  const { interpreterNext, interpreterThreads } = layout;
  if (interpreters === 0 || Math.max(interpreterNext, interpreterThreads) > 0xffff) return;
  bytes.writeBigInt64LE(BigInt(interpreters - textBias), PYTHON.interpreters);
  bytes.writeUInt16LE(interpreterNext, PYTHON.interpreterNext);
  bytes.writeUInt16LE(interpreterThreads, PYTHON.interpreterThreads);
}

function encodeAccess(bytes: Buffer, at: number, access: ThreadAccess | undefined, textBias: number): void {
  const [kind, add, place] = accessFields(access, textBias);
  bytes.writeUInt32LE(kind, at);
  bytes.writeInt32LE(add, at + 4);
  bytes.writeBigInt64LE(BigInt(place), at + 8);
}

function accessFields(
  access: ThreadAccess | undefined,
  textBias: number,
): [kind: number, add: number, at: number] {
  switch (access?.kind) {
    case 'key':
      return [PythonAccessKind.KEY, 0, access.address - textBias];
    case 'offset':
      return [PythonAccessKind.OFFSET, 0, access.offset];
    case 'module':
      return [PythonAccessKind.MODULE, access.add, access.got - textBias];
    case 'descriptor':
      return [PythonAccessKind.DESCRIPTOR, access.add, access.got - textBias];
    case 'global':
      return [PythonAccessKind.GLOBAL, 0, access.address - textBias];
    case undefined:
      return [PythonAccessKind.NOWHERE, 0, 0];
  }
}
