/** Where a live BEAM keeps which of its tables of modules is in use, if the build hides it: code that all modules share says it. */
import type { Machine } from '../../../common/elf/elf.ts';
import { CannotRead, type RuntimeMemory, wordAt } from '../runtime-memory.ts';
import { RANGES } from './layout.ts';

/** That code stands in front of the first module. */
const SHARED_CODE_PAGES = 16;
const PAGE = 4096;

/** How it reads the_active_code_index, and compares it with what a function was called by. */
interface SharedCode {
  use: Buffer;
  /** Bytes of the instructions in front that make the address. */
  addressBytes: number;
  /** 0: they don't. */
  addressIn(code: Buffer): number;
}

const SHARED_CODE: Readonly<Record<Machine, SharedCode>> = {
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
  memory: RuntimeMemory,
  ranges: number,
  machine: Machine,
  variables: { start: number; end: number },
): number {
  const first = memory.word(memory.word(ranges + RANGES.modules));
  for (let page = Math.floor(first / PAGE), i = 0; i < SHARED_CODE_PAGES; i++, page--) {
    const found = activeIndexIn(memory, page * PAGE, SHARED_CODE[machine]);
    if (found >= variables.start && found < variables.end) return found;
  }
  return 0;
}

function activeIndexIn(
  memory: RuntimeMemory,
  page: number,
  { use, addressBytes, addressIn }: SharedCode,
): number {
  try {
    const view = memory.view(page, PAGE);
    const bytes = Buffer.from(view.buffer, view.byteOffset, view.byteLength);
    const at = bytes.indexOf(use);
    return at < addressBytes ? 0 : addressIn(bytes.subarray(at - addressBytes, at));
  } catch (error) {
    if (error instanceof CannotRead) return 0;
    throw error;
  }
}
