/**
 * What the machine code of LuaJIT's interpreter says about how it was built. It is assembly: the instruction that enters a trace and the
 * beginning of a call from C are the same in every build, but for the offsets that are wanted. On amd64 they count from the table of instructions
 * (DISPATCH), which the interpreter has in a register. Encodings: Intel SDM volume 2; Arm Architecture Reference Manual, C6.2 (LDR, STR).
 */
import type { Machine } from '../../../common/elf/elf.ts';

/** The interpreter's native frame: its size, and offsets in it: vm_x64.dasc, vm_x86.dasc, vm_arm64.dasc. */
export interface VmFrame {
  bytes: number;
  /** Of lua_State, the instruction, the frame further out, how many results are wanted. */
  thread: number;
  instruction: number;
  previous: number;
  results: number;
  /** The caller's frame pointer, behind which the return address stands. */
  fp: number;
}

export interface VmCode {
  isGc64: boolean;
  /** Offsets in global_State; that of the table of traces leads into the JIT's state behind it. */
  jitBase: number;
  traces: number;
  /** Where the number of the trace stands that runs; undefined where it does nowhere (arm64). */
  vmState: number | undefined;
  /** GCtrace.mcode. */
  traceCode: number;
  frame: VmFrame;
}

const FRAMES = {
  gc64: { bytes: 80, thread: 16, instruction: 24, previous: 32, results: 8, fp: 64 },
  gc32: { bytes: 80, thread: 24, instruction: 28, previous: 32, results: 16, fp: 64 },
  arm64: { bytes: 208, thread: 16, instruction: 8, previous: 0, results: 40, fp: 192 },
} as const satisfies Record<string, VmFrame>;

/** Undefined where this is another function. */
export const readVmCode = (machine: Machine, code: Uint8Array): VmCode | undefined =>
  machine === 'x86_64' ? readX86(code) : readArm64(code);

const DISPLACEMENT = '([^]{4})';
const BYTE = '([^])';
/** mov DISPATCH->traces, GCtrace, mcode, lua_State of the frame, and to jit_base. */
const ENTER_TRACE = {
  gc64: pattern(
    '\x49\x8b\x8e',
    DISPLACEMENT,
    '\x48\x8b\x04\xc1\x48\x8b\x40',
    BYTE,
    '\x48\x8b\x6c\x24\x10',
    '\x49\x89\x96',
    DISPLACEMENT,
  ),
  gc32: pattern(
    '\x41\x8b\x8e',
    DISPLACEMENT,
    '\x8b\x04\x81\x48\x8b\x40',
    BYTE,
    '\x8b\x6c\x24\x18',
    '\x41\x89\x96',
    DISPLACEMENT,
  ),
};
/** mov global_State of lua_State, add: the table of instructions. */
const ENTER = {
  gc64: pattern('\x4c\x8b\x75\x10\x49\x81\xc6', DISPLACEMENT),
  gc32: pattern('\x44\x8b\x75\x08\x41\x81\xc6', DISPLACEMENT),
};
/** mov to vm_state: the interpreter runs. */
const STATE = pattern('\x41\xc7\x86', DISPLACEMENT, '\xff\xff\xff\xff');

function readX86(code: Uint8Array): VmCode | undefined {
  const text = Buffer.from(code.buffer, code.byteOffset, code.length).toString('latin1');
  for (const build of ['gc64', 'gc32'] as const) {
    const trace = ENTER_TRACE[build].exec(text);
    const table = ENTER[build].exec(text);
    const state = STATE.exec(text);
    if (!trace || !table || !state) continue;
    const from = displacement(table[1]);
    return {
      isGc64: build === 'gc64',
      traces: from + displacement(trace[1]),
      traceCode: trace[2]!.charCodeAt(0),
      jitBase: from + displacement(trace[3]),
      vmState: from + displacement(state[1]),
      frame: FRAMES[build],
    };
  }
  return undefined;
}

/** ldr of GCtrace by its number, x28, out of x0. */
const LOAD_TRACE = 0xf87c781c;
/** So many instructions before and behind, at most. */
const NEAR = 4;

/** The register x22 holds global_State. */
function readArm64(code: Uint8Array): VmCode | undefined {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength & ~3);
  const offsetOf = (at: number, opcode: number): number | undefined => {
    if (at < 0 || at >= view.byteLength) return undefined;
    const instruction = view.getUint32(at, true);
    return (instruction & 0xffc003ff) >>> 0 === opcode ? ((instruction >>> 10) & 0xfff) * 8 : undefined;
  };
  for (let at = 0; at < view.byteLength; at += 4) {
    if (view.getUint32(at, true) !== LOAD_TRACE) continue;
    const near = Array.from({ length: NEAR }, (_, i) => (i + 1) * 4);
    // ldr x0 of x22, ldr x27 of x28, str x19 to x22
    const traces = near.map((by) => offsetOf(at - by, 0xf94002c0)).find((offset) => offset !== undefined);
    const traceCode = near.map((by) => offsetOf(at + by, 0xf940039b)).find((offset) => offset !== undefined);
    const jitBase = near.map((by) => offsetOf(at + by, 0xf90002d3)).find((offset) => offset !== undefined);
    if (traces === undefined || traceCode === undefined || jitBase === undefined) continue;
    return { isGc64: true, traces, traceCode, jitBase, vmState: undefined, frame: FRAMES.arm64 };
  }
  return undefined;
}

function pattern(...parts: string[]): RegExp {
  const isPart = (part: string): boolean => part === DISPLACEMENT || part === BYTE;
  return new RegExp(parts.map((part) => (isPart(part) ? part : escapeBytes(part))).join(''));
}

function escapeBytes(bytes: string): string {
  return [...bytes].map((byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`).join('');
}

const displacement = (bytes: string | undefined): number => Buffer.from(bytes ?? '', 'latin1').readInt32LE(0);
