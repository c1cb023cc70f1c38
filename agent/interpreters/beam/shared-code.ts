/** Code that all modules share, as far as it is known: in front of the first module. What it says of itself, no build tells otherwise. */
import type { Machine } from '../../../common/elf/elf.ts';
import { type RuntimeMemory, wordAt } from '../runtime-memory.ts';
import { RANGES } from './layout.ts';

const PAGES = 16;
const PAGE = 4096;

export interface SharedCode {
  start: number;
  bytes: Buffer;
}

/** From where it can be read on, 16 pages at most, up to the end of the page that the first module begins in. Throws CannotRead. */
export function readSharedCode(memory: RuntimeMemory, ranges: number): SharedCode {
  const last = Math.floor(memory.word(memory.word(ranges + RANGES.modules)) / PAGE) * PAGE;
  const pages: Uint8Array[] = [];
  for (let at = last; pages.length < PAGES; at -= PAGE) {
    const page = memory.whole(at, PAGE);
    if (!page) break;
    // what is read is valid for a short time only
    pages.unshift(Uint8Array.from(page));
  }
  return { start: last - (pages.length - 1) * PAGE, bytes: Buffer.concat(pages) };
}

/** How it reads the_active_code_index, and compares it with what a function was called by. */
interface ActiveUse {
  use: Buffer;
  /** Bytes of the instructions in front that make the address. */
  addressBytes: number;
  /** 0: they don't. */
  addressIn(code: Buffer): number;
}

const ACTIVE_USES: Readonly<Record<Machine, ActiveUse>> = {
  // movabs $the_active_code_index,%rdi; mov (%rdi),%edi; cmp $3,%r12
  x86_64: {
    use: Buffer.from([0x8b, 0x3f, 0x49, 0x83, 0xfc, 0x03]),
    addressBytes: 10,
    addressIn: (code) => (code.readUInt16LE() === 0xbf48 ? wordAt(viewOf(code), 2) : 0),
  },
  // mov x14,#the_active_code_index, in pieces; ldr w14,[x14]; cmp x24,#3
  aarch64: {
    use: Buffer.from('ce0140b91f0f00f1', 'hex'),
    addressBytes: 16,
    addressIn: addressInPieces,
  },
};

const MOVZ_X14 = 0xd280000e;
const MOVK_X14 = 0xf280000e;
const PIECE_BITS = 16;

/** As many of the last instructions as belong together: movz or movk x14,#piece,lsl #shift. */
function addressInPieces(code: Buffer): number {
  let address = 0;
  for (let at = code.length - 4; at >= 0; at -= 4) {
    const instruction = code.readUInt32LE(at);
    const [piece, place] = [(instruction >>> 5) & 0xffff, (instruction >>> 21) & 3];
    const kind = (instruction & 0xff80001f) >>> 0;
    if (kind !== MOVZ_X14 && kind !== MOVK_X14) return 0;
    address += piece * 2 ** (place * PIECE_BITS);
    if (kind === MOVZ_X14) return address;
  }
  return 0;
}

const viewOf = ({ buffer, byteOffset, byteLength }: Buffer): DataView =>
  new DataView(buffer, byteOffset, byteLength);

/** The address of the number of the table of modules that is in use, one of the variables; 0: it was not found. */
export function findActiveIndex(
  { bytes }: SharedCode,
  machine: Machine,
  variables: { start: number; end: number },
): number {
  const { use, addressBytes, addressIn } = ACTIVE_USES[machine];
  for (let at = bytes.indexOf(use); at >= 0; at = bytes.indexOf(use, at + 1)) {
    const found = at < addressBytes ? 0 : addressIn(bytes.subarray(at - addressBytes, at));
    if (found >= variables.start && found < variables.end) return found;
  }
  return 0;
}

/** Addresses: code. */
export interface CodePlace {
  start: number;
  length: number;
}

export const NO_CODE: CodePlace = { start: 0, length: 0 };

/** blr x8; mov x21,x0: the next process is what erts_schedule() returns. */
const NEXT_PROCESS = Buffer.from('00013fd6f50300aa', 'hex');
const STR_X2_X21 = 0xf90002a2;
const BR_X0 = 0xd61f0000;
const SWITCH_INSTRUCTIONS = 64;

/**
 * Code for arm64 that goes from one process to the next: from when it has written down where the one goes on (str x2,[x21,#resumed])
 * to where it goes there (br x0). Empty: it was not found.
 */
export function findSwitch({ start, bytes }: SharedCode, resumed: number): CodePlace {
  const call = bytes.indexOf(NEXT_PROCESS);
  const put = STR_X2_X21 + (resumed / 8) * 1024;
  const from = call < 0 ? -1 : findInstruction(bytes, call, -4, put);
  const to = from < 0 ? -1 : findInstruction(bytes, call, 4, BR_X0);
  return to < 0 ? NO_CODE : { start: start + from + 4, length: to - from };
}

function findInstruction(bytes: Buffer, from: number, step: number, wanted: number): number {
  for (let i = 0, at = from; i < SWITCH_INSTRUCTIONS && at >= 0 && at + 4 <= bytes.length; i++, at += step)
    if (bytes.readUInt32LE(at) === wanted) return at;
  return -1;
}
