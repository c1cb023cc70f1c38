/**
 * thread-access.ts for arm64. An address takes two or three instructions there, in any registers, so the code is not
 * compared with shapes: it is followed from its first instruction, with what each register holds as far as that is
 * known (an address in the file, the thread pointer, what stands at one of the two), until it calls another function
 * or returns. Encodings: Arm Architecture Reference Manual, C4.1 and C6.2.
 */
import type { FunctionCode, ThreadAccess } from './thread-access.ts';

/** `offset` counts from what `base` names. */
interface Value {
  /** `pointer`: the address that stands in the global offset table. `descriptor`: of a variable of the thread. */
  base: 'file' | 'pointer' | 'thread' | 'descriptor';
  offset: number;
  /** Not the address itself but what stands there. */
  isLoaded: boolean;
  /** Of a descriptor: its two words. */
  got: number;
}

type Registers = (Value | undefined)[];
type End = 'call' | 'return';

const MAX_BYTES = 96;
const CALLER_SAVED = 18;

/** `runtime` is the address of _PyRuntime. Undefined where it can't be followed. */
export function decodeBoundThread(code: FunctionCode, runtime: number): ThreadAccess | undefined {
  return follow(code, (value, end) => {
    if (end === 'return') return threadLocal(value);
    const address = value && addressOf(value, runtime);
    // the key itself, or Py_tss_t {int is_initialized; pthread_key_t key}
    return address === undefined
      ? undefined
      : { kind: 'key', address: value!.isLoaded ? address : address + 4 };
  });
}

/** `variable` is the address of _PyRuntime, in 3.6 that of _PyThreadState_Current. */
export function decodeCurrentThread(code: FunctionCode, variable: number): ThreadAccess | undefined {
  return follow(code, (value, end) => {
    if (end === 'call' || !value?.isLoaded) return undefined;
    const address = addressOf(value, variable);
    return address === undefined ? threadLocal(value) : { kind: 'global', address };
  });
}

function threadLocal(value: Value | undefined): ThreadAccess | undefined {
  if (!value?.isLoaded) return undefined;
  const { base, offset, got } = value;
  if (base === 'thread') return { kind: 'offset', offset };
  return base === 'descriptor' ? { kind: 'descriptor', got, add: offset } : undefined;
}

/** What the global offset table leads to is taken to be `pointed`. */
function addressOf({ base, offset }: Value, pointed: number): number | undefined {
  if (base === 'file') return offset;
  return base === 'pointer' && pointed > 0 ? pointed + offset : undefined;
}

/** Branches are not taken: what they skip is the case in which there is no thread state. */
function follow(
  { address, bytes }: FunctionCode,
  judge: (x0: Value | undefined, end: End) => ThreadAccess | undefined,
): ThreadAccess | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const registers: Registers = [];
  for (let at = 0; at + 4 <= Math.min(bytes.length, MAX_BYTES); at += 4) {
    const word = view.getUint32(at, true);
    if (word === 0xd65f03c0) return judge(registers[0], 'return');
    const opcode = word >>> 26;
    // b, bl
    if (opcode === 0x05 || opcode === 0x25) {
      const found = judge(registers[0], 'call');
      if (found || opcode === 0x05) return found;
      registers.fill(undefined, 0, CALLER_SAVED + 1);
    } else if (word >>> 10 === 0x358fc0) callDescriptor(registers);
    else if (word >>> 24 !== 0x34 && word >>> 24 !== 0xb4)
      registers[word & 31] = execute(word, address + at, registers);
  }
  return undefined;
}

/** blr to the function of a descriptor: x0 becomes the distance of the variable from the thread pointer, nothing else changes. */
function callDescriptor(registers: Registers): void {
  const x0 = registers[0];
  const isDescriptor = x0?.base === 'file' && !x0.isLoaded;
  if (!isDescriptor) return void registers.fill(undefined, 0, CALLER_SAVED + 1);
  registers[0] = { base: 'descriptor', offset: 0, isLoaded: false, got: x0.offset };
}

/** What the instruction's destination then holds; undefined where that is not known. */
function execute(word: number, pc: number, registers: Registers): Value | undefined {
  const [first, second] = [registers[(word >>> 5) & 31], registers[(word >>> 16) & 31]];
  const immediate = (word >>> 10) & 0xfff;
  // mrs x, tpidr_el0
  if (word >>> 5 === 0x6a9de82) return { base: 'thread', offset: 0, isLoaded: false, got: 0 };
  // adrp
  if ((word & 0x9f000000) >>> 0 === 0x90000000) {
    const pages = ((word << 8) >> 13) * 4 + ((word >>> 29) & 3);
    return { base: 'file', offset: pc - (pc % 4096) + pages * 4096, isLoaded: false, got: 0 };
  }
  // add x, x, #immediate [, lsl #12]
  if (word >>> 23 === 0x122) return moved(first, immediate * ((word >>> 22) & 1 ? 4096 : 1));
  // add x, x, x
  if ((word & 0xffe0fc00) >>> 0 === 0x8b000000) return sum(first, second);
  // mov x, x
  if ((word & 0xffe0ffe0) >>> 0 === 0xaa0003e0) return second;
  // ldr x, [x, #immediate]; ldr w, [x, #immediate]
  if (word >>> 22 === 0x3e5) return loaded(moved(first, immediate * 8));
  if (word >>> 22 === 0x2e5) return loaded(moved(first, immediate * 4));
  // ldr x, [x, x]
  if ((word & 0xffe0fc00) >>> 0 === 0xf8606800) return loaded(sum(first, second));
  return undefined;
}

/** A word of the file that is counted on from is an address in the global offset table. */
function moved(value: Value | undefined, by: number): Value | undefined {
  if (!value?.isLoaded) return value && { ...value, offset: value.offset + by };
  return value.base === 'file' ? { base: 'pointer', offset: by, isLoaded: false, got: 0 } : undefined;
}

const loaded = (value: Value | undefined): Value | undefined => value && { ...value, isLoaded: true };

/** Of the thread pointer and a descriptor. */
function sum(a: Value | undefined, b: Value | undefined): Value | undefined {
  const [thread, other] = a?.base === 'thread' ? [a, b] : [b, a];
  if (thread?.base !== 'thread' || thread.isLoaded || other?.base !== 'descriptor') return undefined;
  return { ...other, offset: other.offset + thread.offset };
}
