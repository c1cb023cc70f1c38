import { expect, test } from 'vitest';
import { LuajitKind } from '../../records/records.gen.ts';
import { NameCache, type RuntimeFrame } from '../contract.ts';
import { GC64 } from './layout.ts';
import { luajit } from './plugin.ts';

/** Addresses of what the fake process has. */
const [CALLER, CALLED, CHUNK, NAMES] = [0x10000, 0x20000, 0x30000, 0x40000];
const UPVALUES = 0x200;
const VARIABLES = 0x280;
const LINES = 0x300;
const PROTO_BYTES = 0x400;
const OBJECTS_AT = 0x180;

interface Made {
  /** Instructions: opcode, a, and b and c or d. */
  code: readonly (readonly [number, number, number, number?])[];
  strings?: string[];
  upvalues?: string[];
  /** Name, first instruction, how many. */
  variables?: [string, number, number][];
  chunk?: string;
  lines?: number;
  lineInfo?: number[];
  /** Of layout.ts. */
  stringsOf?: number;
  /** Of the file's name. */
  textNumber?: number;
}

/** A process in which one function calls another by its last instruction. */
function processWith({
  code,
  strings = [],
  upvalues = [],
  variables = [],
  chunk = '@/app/a.lua',
  lines = 9,
  lineInfo = [1, 2, 3],
  stringsOf = 0,
  textNumber = 1,
}: Made) {
  const bytes = Buffer.alloc(0x50000);
  const string = (at: number, text: string): void => {
    bytes[at + GC64.type] = 4;
    bytes.writeUInt32LE(text.length, at + GC64.strings[stringsOf]!.length);
    bytes.write(text, at + GC64.strings[stringsOf]!.text);
  };
  const proto = (at: number, firstLine: number): void => {
    bytes[at + GC64.type] = 7;
    bytes.writeUInt32LE(Math.max(code.length, 5), at + GC64.instructions);
    bytes.writeUInt32LE(PROTO_BYTES, at + GC64.size);
    bytes.writeUInt32LE(at + OBJECTS_AT, at + GC64.constants);
    bytes.writeUInt32LE(strings.length, at + GC64.objects);
    bytes[at + GC64.upvalues] = upvalues.length;
    bytes.writeUInt32LE(CHUNK, at + GC64.chunk);
    bytes.writeUInt32LE(firstLine, at + GC64.firstLine);
    bytes.writeUInt32LE(lines, at + GC64.lines);
    bytes.writeUInt32LE(at + LINES, at + GC64.lineInfo);
    bytes.writeUInt32LE(at + UPVALUES, at + GC64.upvalueNames);
    bytes.writeUInt32LE(at + VARIABLES, at + GC64.variables);
    const width = lines < 256 ? 1 : lines < 65_536 ? 2 : 4;
    for (const [i, line] of lineInfo.entries()) bytes.writeUIntLE(line, at + LINES + i * width, width);
  };
  string(CHUNK, chunk);
  bytes.writeUInt32LE(textNumber, CHUNK + 12);
  proto(CALLER, 10);
  proto(CALLED, 20);
  for (const [i, [op, a, b, c]] of code.entries())
    bytes.writeUInt32LE(
      (op | (a << 8) | (c === undefined ? b << 16 : (c << 16) | (b << 24))) >>> 0,
      CALLER + GC64.protoBytes + i * 4,
    );
  for (const [i, text] of strings.entries()) {
    string(NAMES + i * 0x100, text);
    bytes.writeUInt32LE(NAMES + i * 0x100, CALLER + OBJECTS_AT - (i + 1) * 8);
  }
  bytes.write(upvalues.map((name) => `${name}\0`).join(''), CALLER + UPVALUES);
  let [at, before] = [CALLER + VARIABLES, 0];
  for (const [name, start, count] of variables) {
    at += bytes.write(`${name}\0`, at);
    for (const value of [start - before, count]) {
      if (value > 127) bytes[at++] = (value & 127) | 128;
      bytes[at++] = value > 127 ? value >> 7 : value;
    }
    before = start;
  }
  return { read: (address: number, length: number) => bytes.subarray(address, address + length) };
}

interface Asked {
  kind?: number;
  address?: number;
  argument?: number;
  call?: number;
  position?: number;
}

/** Tries all cookies: which one it is follows from where the file's name stands. */
function ask(made: Made, asked: Asked = {}, cache = new NameCache()) {
  const { kind = LuajitKind.LUA, address = CALLED, argument = 0, position = 1 } = asked;
  const call = asked.call ?? CALLER + GC64.protoBytes + (made.code.length - 1) * 4;
  const memory = processWith(made);
  const results = Array.from({ length: 16 }, (_, cookie) => {
    const operand = address / 4 + 2 ** 45 * (kind + 4 * argument + 16 * cookie);
    const low = (((call / 4) % 2 ** 13) * 2 ** 19 + position) >>> 0;
    return luajit.nameFrame({ operand, low, high: Math.floor(call / 4 / 2 ** 13) }, GC64, memory, cache);
  });
  const named = results.filter((result) => typeof result === 'object');
  if (kind === LuajitKind.LUA)
    expect(results.filter((result) => result === 'replaced').length).toBeGreaterThanOrEqual(14);
  return named[0] as RuntimeFrame;
}

const [MOV, UGET, GGET, TGETS, CALL, ADD, ITERC] = [18, 45, 54, 57, 66, 32, 69];
const HEAD = [89, 4, 0] as const;

test.each<[string, Made, number?]>([
  ['work', { code: [HEAD, [GGET, 0, 0], [CALL, 0, 1, 1]], strings: ['work'] }],
  [
    'string.gsub',
    { code: [HEAD, [GGET, 0, 0], [TGETS, 0, 0, 1], [CALL, 0, 1, 1]], strings: ['string', 'gsub'] },
  ],
  // a table in a variable, whatever that is called
  ['run', { code: [HEAD, [TGETS, 1, 0, 0], [CALL, 1, 1, 1]], strings: ['run'], variables: [['self', 0, 9]] }],
  ['leaf', { code: [HEAD, [UGET, 0, 1], [CALL, 0, 1, 1]], upvalues: ['other', 'leaf'] }],
  [
    'f',
    {
      code: [HEAD, [MOV, 2, 1], [CALL, 2, 1, 1]],
      variables: [
        ['x', 0, 9],
        ['f', 0, 9],
      ],
    },
  ],
  // the second argument stands behind the head of the frame
  ['compare', { code: [HEAD, [MOV, 5, 0], [CALL, 2, 1, 2]], variables: [['compare', 0, 200]] }, 2],
  ['__add', { code: [HEAD, [ADD, 0, 1, 2]] }],
  ['step', { code: [HEAD, [GGET, 0, 0], [ITERC, 3, 3, 3]], strings: ['step'] }],
  ['(anonymous:20)', { code: [HEAD, [ADD, 0, 1, 1], [CALL, 0, 1, 1]] }],
  ['(anonymous:20)', { code: [HEAD, [GGET, 0, 7], [CALL, 0, 1, 1]], strings: ['no eighth one'] }],
])('%s', (name, made, argument) => {
  expect(ask(made, argument ? { argument } : {}).name).toBe(name);
});

const CALLS_WORK: Made = { code: [HEAD, [GGET, 0, 0], [CALL, 0, 1, 1]], strings: ['work'] };

test('the first name is kept, by whatever a function is called later', () => {
  const cache = new NameCache();
  expect(ask(CALLS_WORK, { call: 0 }, cache).name).toBe('(anonymous:20)');
  expect(ask(CALLS_WORK, {}, cache).name).toBe('work');
  expect(ask({ ...CALLS_WORK, strings: ['alias'] }, {}, cache).name).toBe('work');
  expect(ask({ ...CALLS_WORK, strings: ['alias'], chunk: '@/b.lua' }, {}, cache).name).toBe('alias');
});

test('strings of before 2020 have no number', () => {
  expect(ask({ ...CALLS_WORK, stringsOf: 1 })).toMatchObject({ name: 'work', file: '/app/a.lua' });
});

test('lines have one, two or four bytes', () => {
  for (const [lines, behind] of [
    [9, 3],
    [300, 299],
    [70_000, 69_999],
  ] as const)
    expect(ask({ ...CALLS_WORK, lines, lineInfo: [0, behind] }, { position: 2 }).line).toBe(20 + behind);
  expect(ask(CALLS_WORK, { position: 0 }).line).toBe(20);
  expect(ask(CALLS_WORK, { position: 2 ** 19 - 1 }).line).toBe(20);
  // more than the function has
  expect(ask({ ...CALLS_WORK, lineInfo: [0, 10] }, { position: 2 }).line).toBe(20);
});

test.each([
  ['@/app/a.lua', '/app/a.lua'],
  ['=stdin', 'stdin'],
  ['return 1', '[string "return 1"]'],
  ['local x\nreturn x', '[string "local x..."]'],
])('what %j is a file of', (chunk, file) => {
  expect(ask({ ...CALLS_WORK, chunk }).file).toBe(file);
});

test('an instruction leads to its function', () => {
  const frame = { kind: LuajitKind.INSTRUCTION, address: CALLED + GC64.protoBytes + 8, call: 0 };
  expect(ask(CALLS_WORK, frame)).toMatchObject({ name: '(anonymous:20)', line: 22, startLine: 20 });
});

test('a file whose name takes the place of another one has other cookies, by the number of its name', () => {
  const cookiesWith = (textNumber: number): string => {
    const memory = processWith({ code: [HEAD, [GGET, 0, 0]], strings: ['work'], textNumber });
    return Array.from({ length: 16 }, (_, cookie) => {
      const operand = CALLED / 4 + 2 ** 45 * (LuajitKind.LUA + 16 * cookie);
      return luajit.nameFrame({ operand, low: 1, high: 0 }, GC64, memory, new NameCache());
    })
      .flatMap((frame, cookie) => (typeof frame === 'object' ? [cookie] : []))
      .join();
  };
  const cookies = new Set(Array.from({ length: 64 }, (_, i) => cookiesWith(i)));
  expect(cookies.size).toBe(16);
});
