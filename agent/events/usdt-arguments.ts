/**
 * Arguments of a probe as SystemTap's notes have them: SIZE@OPERAND for each, the size in bytes, negative where it has a sign, the
 * operand as the assembler writes it: `8@%rdi -4@-20(%rbp) 4@$5`, on arm64 `8@x0 -4@[sp, 16] 4@5`
 * (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation). The compiler chose it, so it is another one at each place.
 */
import type { Machine } from '../../common/elf/elf.ts';
import { type ArgumentPlace, PROGRAM_COUNTER, STACK_POINTER, type UserField } from './event-field.ts';

const MAX_TEXT = 4096;
/** As sys/sdt.h. */
const MAX_ARGUMENTS = 12;

/** How far behind the probe a symbol is; undefined: it is not known. */
export type DistanceTo = (symbol: string) => number | undefined;
type Place = UserField extends infer F
  ? F extends UserField
    ? Omit<F, 'bytes' | 'isSigned'>
    : never
  : never;
type ParseOperand = (text: string, distanceTo: DistanceTo) => (Place & { width?: number }) | undefined;

export function parseUsdtArguments(text: string, machine: Machine, distanceTo: DistanceTo): ArgumentPlace[] {
  const parse = machine === 'x86_64' ? parseX86 : parseArm64;
  const texts = text.slice(0, MAX_TEXT).match(/[^\s[(]*(?:\[[^\]]*\]|\([^)]*\))?/g) ?? [];
  return texts
    .filter((one) => one !== '')
    .slice(0, MAX_ARGUMENTS)
    .map((one) => parseArgument(one, parse, distanceTo) ?? { kind: 'unreadable', text: one });
}

function parseArgument(text: string, parse: ParseOperand, distanceTo: DistanceTo): UserField | undefined {
  const [, sign = '', size, operand = ''] = /^(?:(-?)([1248])@)?([^@]+)$/.exec(text) ?? [];
  const parsed = parse(operand, distanceTo);
  if (!parsed) return undefined;
  const { width = 8, ...place } = parsed;
  return { ...place, bytes: Number(size ?? width), isSigned: sign === '-' || size === undefined };
}

const WIDE = ['ax', 'dx', 'cx', 'bx', 'si', 'di', 'bp', 'sp'];
const NUMBERED = ['8', '9', '10', '11', '12', '13', '14', '15'];

/** Of each name: DWARF number, bytes, lowest bit. */
const X86_REGISTERS: ReadonlyMap<string, readonly [number, number, number]> = new Map([
  ...WIDE.flatMap((name, i): [string, [number, number, number]][] => [
    [`r${name}`, [i, 8, 0]],
    [`e${name}`, [i, 4, 0]],
    [name, [i, 2, 0]],
    [i < 4 ? `${name[0]}l` : `${name}l`, [i, 1, 0]],
    ...(i < 4 ? [[`${name[0]}h`, [i, 1, 8]] as [string, [number, number, number]]] : []),
  ]),
  ...NUMBERED.flatMap((name, i): [string, [number, number, number]][] => [
    [`r${name}`, [8 + i, 8, 0]],
    [`r${name}d`, [8 + i, 4, 0]],
    [`r${name}w`, [8 + i, 2, 0]],
    [`r${name}b`, [8 + i, 1, 0]],
  ]),
  ['rip', [PROGRAM_COUNTER.x86_64, 8, 0]],
]);

/** Where an address is made of it. */
const addressRegister = (name: string): number | undefined => {
  const [number, bytes] = X86_REGISTERS.get(name) ?? [];
  return bytes === 8 ? number : undefined;
};

function parseX86(text: string, distanceTo: DistanceTo): ReturnType<ParseOperand> {
  if (text.startsWith('$')) return constant(text.slice(1));
  const [, name] = /^%(\w+)$/.exec(text) ?? [];
  if (name !== undefined) {
    const [register, width, lowestBit] = X86_REGISTERS.get(name) ?? [];
    return register === undefined
      ? undefined
      : { kind: 'register', register, lowestBit: lowestBit!, width: width! };
  }
  const [, displacement = '', baseName, indexName, scale = '1'] =
    /^([^(]*)\(%(\w+)(?:,\s*%(\w+)(?:,\s*([1248]))?)?\)$/.exec(text) ?? [];
  const base = addressRegister(baseName ?? '');
  const index = indexName === undefined ? 0 : addressRegister(indexName);
  const offset = sumOf(displacement, base === PROGRAM_COUNTER.x86_64 ? distanceTo : () => undefined);
  if (base === undefined || index === undefined || offset === undefined) return undefined;
  return { kind: 'memory', base, offset, index, scale: indexName === undefined ? 0 : Number(scale) };
}

/** `-20`, `52+name`; none is 0. */
function sumOf(text: string, distanceTo: DistanceTo): number | undefined {
  let sum = 0;
  for (const term of text.match(/[+-]?[^+-]+/g) ?? []) {
    const value = integer(term) ?? distanceTo(term.replace(/^\+/, ''));
    if (value === undefined) return undefined;
    sum += value;
  }
  return Number.isSafeInteger(sum) ? sum : undefined;
}

function parseArm64(text: string): ReturnType<ParseOperand> {
  if (/^[xw]zr$/.test(text)) return constant('0');
  const register = arm64Register(text);
  if (register !== undefined)
    return { kind: 'register', register, lowestBit: 0, width: text.startsWith('w') ? 4 : 8 };
  const [, baseName, by] = /^\[(x\d+|sp)(?:,\s*([^\]]+))?\]$/.exec(text) ?? [];
  if (baseName === undefined) return constant(text.replace(/^[#$]/, ''));
  const base = arm64Register(baseName);
  const [, indexName, shift = '0'] = /^(x\d+)(?:,\s*lsl #?([0-4]))?$/.exec(by ?? '') ?? [];
  const index = indexName === undefined ? 0 : arm64Register(indexName);
  const offset = indexName === undefined && by !== undefined ? integer(by.replace(/^#/, '')) : 0;
  if (base === undefined || index === undefined || offset === undefined) return undefined;
  return { kind: 'memory', base, offset, index, scale: indexName === undefined ? 0 : 1 << Number(shift) };
}

function arm64Register(name: string): number | undefined {
  if (name === 'sp' || name === 'wsp') return STACK_POINTER.aarch64;
  const number = Number(/^[xw](\d+)$/.exec(name)?.[1]);
  return number <= 30 ? number : undefined;
}

function constant(text: string): ReturnType<ParseOperand> {
  const value = integer(text);
  return value === undefined ? undefined : { kind: 'constant', value };
}

function integer(text: string): number | undefined {
  const [, sign, digits] = /^([+-]?)(0x[0-9a-f]+|\d+)$/i.exec(text) ?? [];
  const value = sign === '-' ? -Number(digits) : Number(digits);
  return Number.isSafeInteger(value) ? value : undefined;
}
