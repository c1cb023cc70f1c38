/** Where Lua 5.1 to 5.5 keep what a stack and its names need (lstate.h, lobject.h), on 64-bit machines. Offsets in bytes. */
export interface LuaLayout {
  /** What the BPF unwinder needs: struct ef_lua. */
  thread: { status: number; info: number; error: number; pc: number };
  info: { function: number; pc: number; previous: number; bytes: number; status: number };
  flags: { fresh: number; freshValue: number; tail: number; finalizer: number };
  closureProto: number;
  hasCFlag: boolean;
  keepsPc: boolean;
  proto: {
    count: number;
    code: number;
    constantCount: number;
    constants: number;
    lineCount: number;
    lines: number;
    variableCount: number;
    variables: number;
    upvalueCount: number;
    upvalues: number;
    source: number;
    /** First line, then the last one. */
    firstLine: number;
    /** Places in `lines` at which the line itself is noted, `lines` has differences; left out: `lines` has lines. */
    absolute?: { count: number; table: number };
  };
  /** Bytes of an entry of the table of upvalues, which begins with the name. */
  upvalueBytes: number;
  /** Of a string: its length, below 0 where the text lies elsewhere; 0: that says nothing, the text lies in the string. */
  textLength: number;
  /** Bits of an instruction, and their number. */
  fields: Readonly<Record<'op' | 'a' | 'b' | 'c' | 'bx', readonly [number, number]>>;
  /** Names of operations, by their numbers. */
  operations: readonly string[];
}

const FIELDS_5_1 = { op: [0, 6], a: [6, 8], c: [14, 9], b: [23, 9], bx: [14, 18] } as const;
const FIELDS_5_4 = { op: [0, 7], a: [7, 8], b: [16, 8], c: [24, 8], bx: [15, 17] } as const;

const BEHIND_ARITHMETIC =
  'UNM NOT LEN CONCAT JMP EQ LT LE TEST TESTSET CALL TAILCALL RETURN FORLOOP FORPREP TFORCALL TFORLOOP SETLIST CLOSURE VARARG EXTRAARG';
const BEFORE_ARITHMETIC =
  'MOVE LOADK LOADKX LOADBOOL LOADNIL GETUPVAL GETTABUP GETTABLE SETTABUP SETUPVAL SETTABLE NEWTABLE SELF';
const OPERATIONS_5_1 =
  'MOVE LOADK LOADBOOL LOADNIL GETUPVAL GETGLOBAL GETTABLE SETGLOBAL SETUPVAL SETTABLE NEWTABLE SELF ADD SUB MUL DIV MOD POW UNM NOT LEN CONCAT JMP EQ LT LE TEST TESTSET CALL TAILCALL RETURN FORLOOP FORPREP TFORCALL SETLIST CLOSE CLOSURE VARARG';
const OPERATIONS_5_2 = `${BEFORE_ARITHMETIC} ADD SUB MUL DIV MOD POW ${BEHIND_ARITHMETIC}`;
const OPERATIONS_5_3 = `${BEFORE_ARITHMETIC} ADD SUB MUL MOD POW DIV IDIV BAND BOR BXOR SHL SHR ${BEHIND_ARITHMETIC.replace('UNM', 'UNM BNOT')}`;
const OPERATIONS_5_4 =
  'MOVE LOADI LOADF LOADK LOADKX LOADFALSE LFALSESKIP LOADTRUE LOADNIL GETUPVAL SETUPVAL GETTABUP GETTABLE GETI GETFIELD SETTABUP SETTABLE SETI SETFIELD NEWTABLE SELF ADDI ADDK SUBK MULK MODK POWK DIVK IDIVK BANDK BORK BXORK SHRI SHLI ADD SUB MUL MOD POW DIV IDIV BAND BOR BXOR SHL SHR MMBIN MMBINI MMBINK UNM BNOT NOT LEN CONCAT CLOSE TBC JMP EQ LT LE EQK EQI LTI LEI GTI GEI TEST TESTSET CALL TAILCALL RETURN RETURN0 RETURN1 FORLOOP FORPREP TFORPREP TFORCALL TFORLOOP SETLIST CLOSURE VARARG VARARGPREP EXTRAARG';
const OPERATIONS_5_5 = OPERATIONS_5_4.replace('SHRI SHLI', 'SHLI SHRI').replace(
  'VARARG ',
  'VARARG GETVARG ERRNNIL ',
);

const LUA_5_1: LuaLayout = {
  thread: { status: 10, info: 0x28, error: 0xa8, pc: 0x30 },
  // of the flags there is a number only: of the tail calls that the function stands for
  info: { function: 8, pc: 0x18, previous: 0, bytes: 0x28, status: 0x24 },
  flags: { fresh: 0, freshValue: 0, tail: 0xffff, finalizer: 0 },
  closureProto: 0x20,
  hasCFlag: true,
  keepsPc: true,
  proto: {
    ...{ constants: 0x10, code: 0x18, lines: 0x28, variables: 0x30, upvalues: 0x38, source: 0x40 },
    ...{ upvalueCount: 0x48, constantCount: 0x4c, count: 0x50, lineCount: 0x54, variableCount: 0x5c },
    firstLine: 0x60,
  },
  upvalueBytes: 8,
  textLength: 0,
  fields: FIELDS_5_1,
  operations: OPERATIONS_5_1.split(' '),
};

const LUA_5_2: LuaLayout = {
  thread: { status: 10, info: 0x20, error: 0x70, pc: 0 },
  info: { function: 0, pc: 0x38, previous: 0x10, bytes: 0, status: 0x22 },
  // CIST_REENTRY says the contrary of CIST_FRESH
  flags: { fresh: 1 << 2, freshValue: 0, tail: 1 << 6, finalizer: 0 },
  closureProto: 0x18,
  hasCFlag: false,
  keepsPc: false,
  proto: {
    ...{ constants: 0x10, code: 0x18, lines: 0x28, variables: 0x30, upvalues: 0x38, source: 0x48 },
    ...{ upvalueCount: 0x50, constantCount: 0x54, count: 0x58, lineCount: 0x5c, variableCount: 0x64 },
    firstLine: 0x68,
  },
  upvalueBytes: 16,
  textLength: 0,
  fields: FIELDS_5_1,
  operations: OPERATIONS_5_2.split(' '),
};

const PROTO_5_3 = {
  upvalueCount: 0x10,
  constantCount: 0x14,
  count: 0x18,
  lineCount: 0x1c,
  variableCount: 0x24,
};

const LUA_5_3: LuaLayout = {
  ...LUA_5_2,
  thread: { status: 12, info: 0x20, error: 0x58, pc: 0 },
  info: { function: 0, pc: 0x28, previous: 0x10, bytes: 0, status: 0x42 },
  flags: { fresh: 1 << 3, freshValue: 1 << 3, tail: 1 << 5, finalizer: 1 << 8 },
  proto: {
    ...PROTO_5_3,
    ...{
      firstLine: 0x28,
      constants: 0x30,
      code: 0x38,
      lines: 0x48,
      variables: 0x50,
      upvalues: 0x58,
      source: 0x68,
    },
  },
  operations: OPERATIONS_5_3.split(' '),
};

const LUA_5_4: LuaLayout = {
  ...LUA_5_3,
  thread: { status: 10, info: 0x20, error: 0x58, pc: 0 },
  info: { function: 0, pc: 0x20, previous: 0x10, bytes: 0, status: 0x3e },
  flags: { fresh: 1 << 2, freshValue: 1 << 2, tail: 1 << 5, finalizer: 1 << 7 },
  keepsPc: true,
  proto: {
    ...PROTO_5_3,
    ...{
      firstLine: 0x2c,
      constants: 0x38,
      code: 0x40,
      lines: 0x58,
      variables: 0x68,
      upvalues: 0x50,
      source: 0x70,
    },
    absolute: { count: 0x28, table: 0x60 },
  },
  fields: FIELDS_5_4,
  operations: OPERATIONS_5_4.split(' '),
};

/** CallInfo.callstatus has 32 bits; all flags here are in the upper half. */
const LUA_5_5: LuaLayout = {
  ...LUA_5_4,
  thread: { status: 11, info: 0x20, error: 0x58, pc: 0 },
  info: { ...LUA_5_4.info, status: 0x3e },
  flags: { fresh: 1 << 0, freshValue: 1 << 0, tail: 1 << 6, finalizer: 1 << 8 },
  textLength: 0xb,
  operations: OPERATIONS_5_5.split(' '),
};

/** CallInfo.callstatus is a byte, and says nothing of finalizers; behind it is what was there before. */
const LUA_5_3_3: LuaLayout = { ...LUA_5_3, flags: { ...LUA_5_3.flags, finalizer: 0 } };

/** lua_State has no list of variables to be closed yet. */
const LUA_5_4_2: LuaLayout = { ...LUA_5_4, thread: { ...LUA_5_4.thread, error: 0x50 } };

/** By the beginning of the version: the first that fits. Of 5.3.0 to 5.3.2 the flags of a CallInfo were others. */
const LAYOUTS: readonly [RegExp, LuaLayout][] = [
  [/^5\.1/, LUA_5_1],
  [/^5\.2/, LUA_5_2],
  [/^5\.3\.3$/, LUA_5_3_3],
  [/^5\.3\.(?![0-2]$)/, LUA_5_3],
  [/^5\.4\.[0-2]$/, LUA_5_4_2],
  [/^5\.4\./, LUA_5_4],
  [/^5\.5\./, LUA_5_5],
];

/** Undefined where the version is not known. `version`: `5.4.6`. */
export const layoutOf = (version: string): LuaLayout | undefined =>
  LAYOUTS.find(([pattern]) => pattern.test(version))?.[1];
