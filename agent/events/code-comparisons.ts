/**
 * Where code compares something with an address of its file. Compilers write that in two ways: the address is loaded, counted
 * from the instruction, and compared a few instructions later (libraries, programs that may lie anywhere, arm64), or it stands in
 * the comparison itself (programs at a fixed place, amd64).
 */
import { type ElfFile, PF_X, PT_LOAD } from '../../common/elf/elf.ts';
import { Arm64Reader } from '../stack-deltas/machine-code/arm64-instruction.ts';
import { Effect } from '../stack-deltas/machine-code/code-reader.ts';
import { InstructionReader, LONGEST_INSTRUCTION } from '../stack-deltas/machine-code/instruction.ts';

const PIECE_BYTES = 4 << 20;
/** Instructions from a load on, among which the comparison is. */
const MAX_BEHIND = 8;
/** Behind a piece, so that what begins in it ends there. */
const OVERLAP_BYTES = (MAX_BEHIND + 2) * LONGEST_INSTRUCTION;

export interface Comparison {
  /** ELF virtual address of the instruction that has the address. */
  at: number;
  /** What something is compared with. */
  to: number;
}

/** Throws OutOfBounds. */
export function findComparisons(elf: ElfFile, addresses: ReadonlySet<number>): Comparison[] {
  const find = elf.machine === 'x86_64' ? findOnAmd64 : findOnArm64;
  return elf.segments
    .filter(({ type, flags }) => type === PT_LOAD && flags & PF_X)
    .flatMap(({ offset, vaddr, filesz }) => {
      const found: Comparison[] = [];
      for (let from = 0; from < filesz; from += PIECE_BYTES) {
        const code = elf.source.read(offset + from, Math.min(PIECE_BYTES + OVERLAP_BYTES, filesz - from));
        const end = vaddr + from + PIECE_BYTES;
        found.push(...find(code, vaddr + from, addresses).filter(({ at }) => at < end));
      }
      return found;
    });
}

/** At any byte an instruction may begin: what only looks like one hardly has just that address. */
function findOnAmd64(code: Uint8Array, base: number, addresses: ReadonlySet<number>): Comparison[] {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  const reader = new InstructionReader(code, base);
  const found: Comparison[] = [];
  for (let i = 0; i + 7 <= code.length; i++) {
    const rex = code[i]!;
    // 64 bits
    if ((rex & 0xf8) !== 0x48) continue;
    const to = addressIn(view, i, base, reader);
    if (to === undefined || !addresses.has(to)) continue;
    const register = ((code[i + 2]! >> 3) & 7) | ((rex & 4) << 1);
    if (code[i + 1] !== LEA || isComparedOnAmd64(code, i + 7, reader, register))
      found.push({ at: base + i, to });
  }
  return found;
}

const LEA = 0x8d;

/** lea reg, [rip + d]; cmp rax, imm32; cmp reg or memory, imm32. */
function addressIn(view: DataView, at: number, base: number, reader: InstructionReader): number | undefined {
  const op = view.getUint8(at + 1);
  const modrm = view.getUint8(at + 2);
  if (op === LEA && (modrm & 0xc7) === 5) return base + at + 7 + view.getInt32(at + 3, true);
  if (op === 0x3d) return view.getInt32(at + 2, true);
  if (op !== 0x81 || (modrm & 0x38) !== 0x38) return undefined;
  reader.read(at);
  const end = at + reader.length;
  return end <= view.byteLength ? view.getInt32(end - 4, true) : undefined;
}

function isComparedOnAmd64(
  code: Uint8Array,
  from: number,
  reader: InstructionReader,
  register: number,
): boolean {
  for (let n = 0, at = from; n < MAX_BEHIND && at + LONGEST_INSTRUCTION <= code.length; n++) {
    const [rex, op, modrm] = [code[at]!, code[at + 1]!, code[at + 2]!];
    if ((rex & 0xf8) === 0x48) {
      const reg = ((modrm >> 3) & 7) | ((rex & 4) << 1);
      const rm = modrm >= 0xc0 ? (modrm & 7) | ((rex & 1) << 3) : -1;
      // cmp of two registers, or of one and memory
      if ((op === 0x39 || op === 0x3b) && (reg === register || rm === register)) return true;
      // it is loaded with something else
      if ((op === 0x8b || op === LEA) && reg === register) return false;
    }
    reader.read(at);
    if (reader.effect === Effect.UNKNOWN || reader.effect === Effect.RETURN) return false;
    at += reader.length;
  }
  return false;
}

const WORD_BYTES = 4;

function findOnArm64(code: Uint8Array, base: number, addresses: ReadonlySet<number>): Comparison[] {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  const reader = new Arm64Reader(code, base);
  const found: Comparison[] = [];
  for (let at = 0; at + WORD_BYTES <= code.length; at += WORD_BYTES) {
    reader.read(at);
    if (reader.effect !== Effect.LOAD_ADDRESS || !addresses.has(reader.value)) continue;
    if (isComparedOnArm64(view, at + WORD_BYTES, view.getUint32(at, true) & 31))
      found.push({ at: base + at, to: reader.value });
  }
  return found;
}

function isComparedOnArm64(view: DataView, from: number, register: number): boolean {
  const end = Math.min(from + MAX_BEHIND * WORD_BYTES, view.byteLength - WORD_BYTES + 1);
  for (let at = from; at < end; at += WORD_BYTES) {
    const word = view.getUint32(at, true);
    // subs xzr, xn, xm
    const isComparison = (word & 0xffe0fc1f) >>> 0 === 0xeb00001f;
    if (isComparison && (((word >>> 5) & 31) === register || ((word >>> 16) & 31) === register)) return true;
    // adrp, or ldr of 64 bits: it is loaded with something else
    const loads = (word & 0x9f000000) >>> 0 === 0x90000000 || (word & 0xffc00000) >>> 0 === 0xf9400000;
    if (loads && (word & 31) === register) return false;
  }
  return false;
}
