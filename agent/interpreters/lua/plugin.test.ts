import { expect, test } from 'vitest';
import { EF_LUA_ADDRESS_BITS, EF_LUA_NO_CALLER } from '../../records/records.gen.ts';
import { NameCache } from '../contract.ts';
import { RuntimeMemory } from '../runtime-memory.ts';
import { calledName } from './call-names.ts';
import { countShifts } from './detect-lua.ts';
import { type LuaLayout, layoutOf } from './layout.ts';
import { lua } from './plugin.ts';
import { Proto } from './protos.ts';

const PROTO = 0x1000;
const [CODE, LINES, ABSOLUTE, CONSTANTS, UPVALUES, VARIABLES] = [
  0x2000, 0x3000, 0x3800, 0x4000, 0x5000, 0x6000,
];
const TEXTS = 0x8000;

interface Made {
  /** Operation and its operands a, b, c. */
  code?: readonly (readonly [string, number, number, number])[];
  constants?: string[];
  upvalues?: string[];
  /** Name, first instruction, the one behind the last. */
  variables?: [string, number, number][];
  lines?: number[];
  /** Instruction, line. */
  absolute?: [number, number][];
}

/** A prototype in memory, as the version has it. */
function make(layout: LuaLayout, made: Made): Buffer {
  const { code = [], constants = [], upvalues = [], variables = [], lines = [], absolute = [] } = made;
  const bytes = Buffer.alloc(0x10000);
  const at = layout.proto;
  let text = TEXTS;
  const string = (value: string): number => {
    text += 0x100;
    bytes.write(`${value}\0`, text + 0x18);
    return text;
  };
  const table = (count: number, pointer: number, address: number, length: number): void => {
    bytes.writeUInt32LE(length, PROTO + count);
    bytes.writeUInt32LE(address, PROTO + pointer);
  };
  bytes.writeUInt32LE(string('@/app/a.lua'), PROTO + at.source);
  bytes.writeUInt32LE(10, PROTO + at.firstLine);
  table(at.count, at.code, CODE, Math.max(code.length, lines.length));
  for (const [i, [name, ...operands]] of code.entries()) {
    const fields = [layout.operations.indexOf(name), ...operands];
    const places = [layout.fields.op, layout.fields.a, layout.fields.b, layout.fields.c];
    bytes.writeUInt32LE(
      places.reduce((word, [bit], field) => word + fields[field]! * 2 ** bit, 0),
      CODE + i * 4,
    );
  }
  table(at.constantCount, at.constants, CONSTANTS, constants.length);
  for (const [i, value] of constants.entries()) {
    bytes.writeUInt32LE(string(value), CONSTANTS + i * 16);
    bytes[CONSTANTS + i * 16 + 8] = 4;
  }
  table(at.upvalueCount, at.upvalues, UPVALUES, upvalues.length);
  for (const [i, value] of upvalues.entries())
    bytes.writeUInt32LE(string(value), UPVALUES + i * layout.upvalueBytes);
  table(at.variableCount, at.variables, VARIABLES, variables.length);
  for (const [i, [name, start, end]] of variables.entries()) {
    bytes.writeUInt32LE(string(name), VARIABLES + i * 16);
    bytes.writeUInt32LE(start, VARIABLES + i * 16 + 8);
    bytes.writeUInt32LE(end, VARIABLES + i * 16 + 12);
  }
  table(at.lineCount, at.lines, LINES, lines.length);
  for (const [i, line] of lines.entries())
    if (at.absolute) bytes.writeInt8(line, LINES + i);
    else bytes.writeUInt32LE(line, LINES + i * 4);
  if (at.absolute) table(at.absolute.count, at.absolute.table, ABSOLUTE, absolute.length);
  for (const [i, [position, line]] of absolute.entries()) {
    bytes.writeUInt32LE(position, ABSOLUTE + i * 8);
    bytes.writeUInt32LE(line, ABSOLUTE + i * 8 + 4);
  }
  return bytes;
}

const memoryOf = (bytes: Buffer) => ({
  read: (address: number, length: number) => bytes.subarray(address, address + length),
});

const protoIn = (bytes: Buffer, layout: LuaLayout): Proto =>
  new Proto(new RuntimeMemory(memoryOf(bytes)), layout, PROTO);

const protoOf = (version: string, made: Made): Proto => {
  const layout = layoutOf(version)!;
  return protoIn(make(layout, made), layout);
};

/** What the last instruction calls. */
const nameIn = (version: string, made: Made, argument = 0): string | undefined =>
  calledName(protoOf(version, made), made.code!.length - 1, argument);

test('lines of 5.1 to 5.3 stand there', () => {
  for (const version of ['5.1.5', '5.2.4', '5.3.6'])
    expect([0, 1, 2, 3].map((at) => protoOf(version, { lines: [11, 11, 13] }).line(at))).toEqual([
      11, 11, 13, 0,
    ]);
});

test('long texts of 5.5 lie outside of the string', () => {
  const layout = layoutOf('5.5.1')!;
  const bytes = make(layout, { lines: [1] });
  const string = bytes.readUInt32LE(PROTO + layout.proto.source);
  expect(protoIn(bytes, layout).chunk()).toBe('@/app/a.lua');
  bytes.writeInt8(-1, string + 11);
  bytes.writeBigUInt64LE(0x9000n, string + 0x18);
  bytes.write('@/app/b.lua\0', 0x9000);
  expect(protoIn(bytes, layout).chunk()).toBe('@/app/b.lua');
});

test('lines of 5.4 are differences, counted from the last line that is noted', () => {
  const proto = protoOf('5.4.4', { lines: [1, 0, -128, 2, -1], absolute: [[2, 500]] });
  expect([0, 1, 2, 3, 4].map((at) => proto.line(at))).toEqual([11, 11, 500, 502, 501]);
});

test('a difference that says that the line is noted, where none is, is not a line', () => {
  expect(protoOf('5.4.4', { lines: [1, -128, 1] }).line(2)).toBe(0);
});

test('functions are called by variables, upvalues and globals', () => {
  expect(
    nameIn('5.4.4', {
      code: [
        ['MOVE', 1, 0, 0],
        ['CALL', 1, 1, 1],
      ],
      variables: [['leaf', 0, 9]],
    }),
  ).toBe('leaf');
  expect(
    nameIn('5.1.5', {
      code: [
        ['GETUPVAL', 0, 0, 0],
        ['CALL', 0, 1, 1],
      ],
      upvalues: ['up'],
    }),
  ).toBe('up');
  expect(
    nameIn('5.3.6', {
      code: [
        ['GETTABUP', 0, 0, 256],
        ['CALL', 0, 1, 1],
      ],
      upvalues: ['_ENV'],
      constants: ['run'],
    }),
  ).toBe('run');
});

test('a name that is too long for the instruction of its kind comes by a register', () => {
  const code = [
    ['GETUPVAL', 0, 0, 0],
    ['LOADK', 1, 0, 0],
    ['GETTABLE', 0, 0, 1],
    ['CALL', 0, 1, 1],
  ] as const;
  const long = 'a_function_whose_name_has_more_than_forty_characters';
  expect(nameIn('5.4.4', { code, upvalues: ['_ENV'], constants: [long] })).toBe(long);
  const unknown = code.map((one) => (one[0] === 'LOADK' ? (['MOVE', 1, 2, 0] as const) : one));
  expect(nameIn('5.4.4', { code: unknown, upvalues: ['_ENV'], constants: [long] })).toBeUndefined();
});

test('members of global tables have the name of the table, methods theirs', () => {
  const code = [
    ['GETTABUP', 0, 0, 0],
    ['GETFIELD', 0, 0, 1],
    ['CALL', 0, 1, 1],
  ] as const;
  expect(nameIn('5.4.4', { code, upvalues: ['_ENV'], constants: ['string', 'gsub'] })).toBe('string.gsub');
  expect(
    nameIn('5.2.4', {
      code: [
        ['SELF', 1, 0, 256],
        ['CALL', 1, 1, 1],
      ],
      constants: ['method'],
    }),
  ).toBe('method');
});

test('what C calls is called by the argument that it was; up to 5.2 xpcall swaps them', () => {
  const code = [
    ['GETTABUP', 0, 0, 256],
    ['GETTABUP', 1, 0, 257],
    ['CALL', 0, 3, 1],
  ] as const;
  expect(
    nameIn(
      '5.3.6',
      {
        code: [
          ['MOVE', 4, 0, 0],
          ['CALL', 3, 2, 1],
        ],
        variables: [['risky', 0, 9]],
      },
      1,
    ),
  ).toBe('risky');
  expect(nameIn('5.2.4', { code, upvalues: ['_ENV'], constants: ['xpcall', 'fails'] }, 2)).toBe('fails');
});

test('metamethods are called by their events', () => {
  expect(nameIn('5.4.4', { code: [['MMBIN', 0, 1, 6]] })).toBe('__add');
  expect(nameIn('5.1.5', { code: [['GETTABLE', 0, 1, 256]] })).toBe('__index');
  expect(nameIn('5.4.4', { code: [['MOVE', 0, 1, 0]] })).toBeUndefined();
});

test('what two branches may have set has no name', () => {
  const jump = 2 ** 17 - 1 + 1;
  const code = [
    ['JMP', 0, jump >> 9, jump & 511],
    ['GETTABUP', 0, 0, 256],
    ['CALL', 0, 1, 1],
  ] as const;
  expect(nameIn('5.3.6', { code, upvalues: ['_ENV'], constants: ['run'] })).toBeUndefined();
});

/** Whatever the cookie is. */
const framesAt = (address: number, read: (address: number, length: number) => Buffer) =>
  Array.from({ length: 16 }, (_, cookie) =>
    lua.nameFrame(
      { operand: address / 16 + 2 ** (EF_LUA_ADDRESS_BITS + 1) * cookie, low: 0, high: EF_LUA_NO_CALLER },
      { version: '5.4.4' },
      { read },
      new NameCache(),
    ),
  );

test('counts that are none, and code that is not there, cost the name', () => {
  const layout = layoutOf('5.4.4')!;
  const bytes = make(layout, { lines: [1] });
  bytes.writeUInt32LE(0xffffffff, PROTO + layout.proto.lineCount);
  expect(new Set(framesAt(PROTO, memoryOf(bytes).read))).toEqual(new Set(['replaced', 'malformed']));
});

test('functions stand where arm64 has its programs, too', () => {
  const bytes = make(layoutOf('5.4.4')!, { lines: [1] });
  const above = 0xaaaa_0000_0000;
  const frames = framesAt(above + PROTO, (address, length) =>
    bytes.subarray(address % above, (address % above) + length),
  );
  expect(frames.filter((frame) => frame !== 'replaced')).toEqual([
    { name: '(anonymous:10)', file: '/app/a.lua', line: 11, column: 0, startLine: 10 },
  ]);
});

test('instructions that take an operand out are counted', () => {
  expect(countShifts('x86_64', Uint8Array.of(0xc1, 0xe8, 24, 0xc1, 0xeb, 23, 0xc1, 0xe0, 24), 24)).toBe(1);
  const lsr = new Uint8Array(new Uint32Array([0x53187c41, 0x53177c41, 0x2a0003e0]).buffer);
  expect(countShifts('aarch64', lsr, 24)).toBe(1);
});

test('a file whose name takes the place of another one has other cookies, by the hash of its name', () => {
  const layout = layoutOf('5.4.4')!;
  const cookiesWith = (hash: number): string => {
    const bytes = make(layout, { lines: [1] });
    bytes.writeUInt32LE(hash, bytes.readUInt32LE(PROTO + layout.proto.source) + 12);
    return framesAt(PROTO, memoryOf(bytes).read)
      .flatMap((frame, cookie) => (typeof frame === 'object' ? [cookie] : []))
      .join();
  };
  const cookies = new Set(Array.from({ length: 64 }, (_, i) => cookiesWith(i * 0x1000193)));
  expect(cookies.size).toBe(16);
});
