/** machine-code.ts for arm64 (encodings: Arm Architecture Reference Manual, C6.2). */
import {
  isCall,
  isJump,
  isReturn,
  type Registers,
  step,
  targetOf,
  threadLocal,
  viewOf,
} from '../arm64-code.ts';
import {
  type Branch,
  type Code,
  type CollectorPlace,
  type ContextAccess,
  type Decoder,
  mayBeSpace,
} from './machine-code.ts';

/** Instructions from the first on, with what registers hold behind each, until `find` finds something. */
function walk<T>(
  code: Code,
  find: (word: number, registers: Registers, pc: number) => T | undefined,
): T | undefined {
  const view = viewOf(code);
  const registers: Registers = [];
  for (let at = 0; at < view.byteLength; at += 4) {
    const [word, pc] = [view.getUint32(at, true), code.address + at];
    step(word, pc, registers);
    const found = find(word, registers, pc);
    if (found !== undefined) return found;
    // what stands behind these is reached from elsewhere
    if (isReturn(word) || isJump(word)) registers.length = 0;
  }
  return undefined;
}

const firstThreadLocal = (code: Code): ContextAccess | undefined =>
  walk(code, (word, registers) => threadLocal(registers[word & 31]));

function targetsOf(code: Code, branches: readonly Branch[]): number[] {
  const end = code.address + code.bytes.length;
  const targets: number[] = [];
  walk(code, (word, _, pc) => {
    const isWanted =
      (isCall(word) && branches.includes('call')) || (isJump(word) && branches.includes('jump'));
    const target = targetOf(word, pc);
    if (isWanted && (target < code.address || target >= end)) targets.push(target);
    return undefined;
  });
  return targets;
}

/** The place that a 32-bit register is compared with: cmp w, w where one of the two was loaded from there. */
const firstCompared = (code: Code): number | undefined =>
  walk(code, (word, registers) => {
    if ((word & 0xffe0fc1f) >>> 0 !== 0x6b00001f) return undefined;
    const compared = [registers[(word >>> 16) & 31], registers[(word >>> 5) & 31]];
    return compared.find((value) => value?.isLoaded && value.base === 'file')?.offset;
  });

/** Loads with an immediate, by their upper ten bits: of 1, 4 and 8 bytes. */
const LOADS: ReadonlyMap<number, number> = new Map([
  [0x0e5, 1],
  [0x2e5, 4],
  [0x3e5, 8],
]);

/** Its flags are near its beginning, and tested in one of the next instructions. */
const NEAR = 8;

/** What `rb_during_gc` reads: ldr x, [x, #space]; then ldr or ldrb of [x, #flags]. */
function readsCollector(code: Code): CollectorPlace | undefined {
  const view = viewOf(code);
  return walk(code, (word, registers, pc) => {
    const space = ((word >>> 10) & 0xfff) * 8;
    // ldr x, [x, #immediate]; of the global offset table it is something else
    const isLoad = word >>> 22 === 0x3e5 && registers[word & 31]?.base !== 'file';
    if (!isLoad || !mayBeSpace(space)) return undefined;
    const at = pc - code.address + 4;
    for (let behind = at; behind < Math.min(view.byteLength, at + 4 * NEAR); behind += 4) {
      const next = view.getUint32(behind, true);
      const scale = LOADS.get(next >>> 22);
      if (scale !== undefined && ((next >>> 5) & 31) === (word & 31))
        return { space, flags: ((next >>> 10) & 0xfff) * scale };
    }
    return undefined;
  });
}

export const arm64: Decoder = { firstThreadLocal, targetsOf, firstCompared, readsCollector };
