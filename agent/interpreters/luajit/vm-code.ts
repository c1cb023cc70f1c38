/**
 * What the machine code of LuaJIT's interpreter says about how it was built. It is assembly: the instruction that enters a trace and the
 * beginning of a call from C are the same bytes in every build, but for the offsets that are wanted. They count from the table of instructions
 * (DISPATCH), which the interpreter has in a register. Encodings: Intel SDM volume 2.
 */
export interface VmCode {
  isGc64: boolean;
  /** Offsets in global_State; that of the table of traces leads into the JIT's state behind it. */
  jitBase: number;
  vmState: number;
  traces: number;
  /** GCtrace.mcode. */
  traceCode: number;
  /** Of the stack pointer: where lua_State is saved. */
  frameThread: number;
}

const DISPLACEMENT = '([^]{4})';
const BYTE = '([^])';
/** mov DISPATCH->traces, GCtrace, mcode, lua_State, and to jit_base. */
const ENTER_TRACE = {
  gc64: pattern(
    '\x49\x8b\x8e',
    DISPLACEMENT,
    '\x48\x8b\x04\xc1\x48\x8b\x40',
    BYTE,
    '\x48\x8b\x6c\x24',
    BYTE,
    '\x49\x89\x96',
    DISPLACEMENT,
  ),
  gc32: pattern(
    '\x41\x8b\x8e',
    DISPLACEMENT,
    '\x8b\x04\x81\x48\x8b\x40',
    BYTE,
    '\x8b\x6c\x24',
    BYTE,
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

/** Undefined where this is another function. */
export function readVmCode(code: Uint8Array): VmCode | undefined {
  const text = Buffer.from(code.buffer, code.byteOffset, code.length).toString('latin1');
  for (const isGc64 of [true, false]) {
    const build = isGc64 ? 'gc64' : 'gc32';
    const trace = ENTER_TRACE[build].exec(text);
    const table = ENTER[build].exec(text);
    const state = STATE.exec(text);
    if (!trace || !table || !state) continue;
    const from = displacement(table[1]);
    return {
      isGc64,
      traces: from + displacement(trace[1]),
      traceCode: trace[2]!.charCodeAt(0),
      frameThread: trace[3]!.charCodeAt(0),
      jitBase: from + displacement(trace[4]),
      vmState: from + displacement(state[1]),
    };
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
