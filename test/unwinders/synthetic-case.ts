/** Cases that no program was captured for: their memory is made up. */
import {
  FILE_ENTRY,
  FileState,
  PAGE,
  PYTHON,
  PythonAccessKind,
  PythonBoundaryKind,
  PythonInstructionKind,
  RULE,
  RuleKind,
  Runtime,
  ValueKind,
} from '../../agent/records/records.gen.ts';

const CODE = 0x10000;
const STACK = 0x7f0000000000;
const THREAD = 0x20000000;
const FRAMES = 0x30000000;
const CODE_OBJECT = 0x40000000;
const CODE_TYPE = 0x50000000;
const FRAME_BYTES = 32;
const NATIVE_FRAME_BYTES = 16;
const OWNER_C_STACK = 3;
const RSP = 7;

const hex = (value: number | bigint): string => BigInt.asUintN(64, BigInt(value)).toString(16);
const bytesOf = (size: number, fill: (bytes: Buffer) => void): string => {
  const bytes = Buffer.alloc(size);
  fill(bytes);
  return bytes.toString('hex');
};

/** A table by which every frame of the first page has so many bytes; it has the key's number. */
function tableLines(key: number, frameBytes: number, runtime: number = Runtime.NONE): string[] {
  const entry = bytesOf(FILE_ENTRY.bytes, (b) => {
    b.writeUInt32LE(FileState.TABLE, FILE_ENTRY.state);
    b.writeUInt32LE(key, FILE_ENTRY.table);
    b.writeUInt32LE(1, FILE_ENTRY.pageCount);
    b.writeUInt32LE(PAGE.bytes * 2, FILE_ENTRY.rulesAt);
    b.writeUInt32LE(PAGE.bytes * 2 + RULE.bytes * 2, FILE_ENTRY.rowsAt);
    b.writeUInt32LE(runtime, FILE_ENTRY.runtime);
  });
  const table = bytesOf(PAGE.bytes * 2 + RULE.bytes * 2 + 4, (b) => {
    const rule = PAGE.bytes * 2 + RULE.bytes;
    b.writeUInt16LE(1, PAGE.rows);
    b.writeUInt8(RuleKind.CFA, rule + RULE.kind);
    b.writeUInt8(RSP, rule + RULE.cfaReg);
    b.writeUInt8(ValueKind.CFA, rule + RULE.raKind);
    b.writeInt32LE(frameBytes, rule + RULE.cfaOffset);
    b.writeInt16LE(-8, rule + RULE.raOffset);
    b.writeUInt32LE(1 << 16, rule + RULE.bytes);
  });
  return [`entry files ${keyBytes(key)} ${entry}`, `block ${hex(key)} 0 ${table}`];
}

const keyBytes = (key: number): string => bytesOf(8, (b) => b.writeBigUInt64LE(BigInt(key)));

/** Everything in the file's first page is the loop. */
function pythonLines(): string[] {
  const python = bytesOf(PYTHON.bytes, (b) => {
    b.writeBigUInt64LE(0x1000n, PYTHON.ranges + 8);
    b.writeUInt32LE(PythonAccessKind.OFFSET, PYTHON.boundKind);
    // an address of the process is the field less the mapping's delta
    b.writeBigInt64LE(BigInt(CODE_TYPE - CODE), PYTHON.codeType);
    b.writeUInt8(PythonInstructionKind.BYTES, PYTHON.instruction);
    b.writeUInt8(PythonBoundaryKind.OWNER, PYTHON.boundary);
    b.writeUInt8(FRAME_BYTES, PYTHON.frameBytes);
    b.writeUInt8(64, PYTHON.codeBytes);
    b.writeUInt8(8, PYTHON.threadFrame);
    b.writeUInt8(8, PYTHON.framePrevious);
    b.writeUInt8(16, PYTHON.frameInstruction);
    b.writeUInt8(24, PYTHON.frameBoundary);
    b.writeUInt8(8, PYTHON.objectType);
  });
  return [
    ...tableLines(0x100, NATIVE_FRAME_BYTES, Runtime.PYTHON),
    `entry python_files ${keyBytes(0x100)} ${python}`,
    `mapping ${hex(CODE)} ${hex(CODE + 0x1000)} ${hex(-CODE)} 100`,
  ];
}

/** A leaf whose file has no table yet; its frame pointer points to `fp` and `returnAddress`. */
export function pendingCase(returnAddress: number): string {
  const entry = bytesOf(FILE_ENTRY.bytes, (b) => b.writeUInt32LE(FileState.PENDING, FILE_ENTRY.state));
  const fp = STACK + 16;
  const registers = [0, 0, 0, 0, 0, 0, fp, STACK, 0, 0, 0, 0, 0, 0, 0, 0, CODE + 0x200, THREAD];
  return [
    'config 3ff 0',
    `registers ${registers.map(hex).join(' ')}`,
    `entry files ${keyBytes(0x100)} ${entry}`,
    `mapping ${hex(CODE)} ${hex(CODE + 0x1000)} ${hex(-CODE)} 100`,
    `memory ${hex(fp)} ${bytesOf(16, (b) => b.writeBigUInt64LE(BigInt(returnAddress), 8))}`,
    '',
  ].join('\n');
}

/** Two ranges of a JIT, each with a table of its own: one calls the other from the same offset. */
export function jitCase(): string {
  const [inner, outer] = [CODE, CODE + 0x1000];
  const stack = bytesOf(16 + 32, (b) => {
    b.writeBigUInt64LE(BigInt(outer + 0x201), 8);
    // no code: it would be the return address by the other table
    b.writeBigUInt64LE(0x1234n, 16 + 8);
  });
  const registers = [0, 0, 0, 0, 0, 0, 0, STACK, 0, 0, 0, 0, 0, 0, 0, 0, inner + 0x200, THREAD];
  return [
    'config 3ff 0',
    `registers ${registers.map(hex).join(' ')}`,
    ...tableLines(0x100, 16),
    ...tableLines(0x101, 32),
    `mapping ${hex(inner)} ${hex(outer)} ${hex(-inner)} 100 jit`,
    `mapping ${hex(outer)} ${hex(outer + 0x1000)} ${hex(-outer)} 101 jit`,
    `memory ${hex(STACK)} ${stack}`,
    '',
  ].join('\n');
}

/** A CPython of 3.13's kind: `natives` frames of the loop, and a list of `pythons` frames that belong to the outermost of them. */
export function syntheticCase(natives: number, pythons: number): string {
  const stack = bytesOf(natives * NATIVE_FRAME_BYTES, (b) => {
    for (let i = 0; i < natives - 1; i++)
      b.writeBigUInt64LE(BigInt(CODE + 0x100), i * NATIVE_FRAME_BYTES + 8);
  });
  const link = STACK + natives * NATIVE_FRAME_BYTES - 8;
  const frames = bytesOf(pythons * FRAME_BYTES, (b) => {
    for (let i = 0; i < pythons; i++) {
      b.writeBigUInt64LE(BigInt(CODE_OBJECT), i * FRAME_BYTES);
      const previous = i + 1 < pythons ? FRAMES + (i + 1) * FRAME_BYTES : link;
      b.writeBigUInt64LE(BigInt(previous), i * FRAME_BYTES + 8);
    }
  });
  const boundary = bytesOf(FRAME_BYTES, (b) => b.writeUInt8(OWNER_C_STACK, 24));
  const registers = [0, 0, 0, 0, 0, 0, 0, STACK, 0, 0, 0, 0, 0, 0, 0, 0, CODE + 0x200, THREAD];
  return [
    `config 3ff ${hex(1 << Runtime.PYTHON)}`,
    `registers ${registers.map(hex).join(' ')}`,
    ...pythonLines(),
    // it lies over the end of the stack, and is found first
    `memory ${hex(link)} ${boundary}`,
    `memory ${hex(STACK)} ${stack}`,
    `memory ${hex(THREAD)} ${bytesOf(16, (b) => {
      b.writeBigUInt64LE(BigInt(THREAD), 0);
      b.writeBigUInt64LE(BigInt(FRAMES), 8);
    })}`,
    `memory ${hex(FRAMES)} ${frames}`,
    `memory ${hex(CODE_OBJECT)} ${bytesOf(64, (b) => b.writeBigUInt64LE(BigInt(CODE_TYPE), 8))}`,
    '',
  ].join('\n');
}
