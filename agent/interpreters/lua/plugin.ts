/** Lua 5.1 to 5.5: docs/interpreters/lua.md. */
import {
  EF_LUA_ADDRESS_BITS,
  EF_LUA_CALL_BITS,
  EF_LUA_FINALIZER,
  EF_LUA_NO_CALLER,
  EF_LUA_POSITION_BITS,
  FrameKind,
  LUA,
  RUNTIME_MAPS,
  Runtime,
} from '../../records/records.gen.ts';
import type { FrameWords, NameCache, RuntimeFrame, RuntimePlugin } from '../contract.ts';
import { cookieOfBits } from '../cookie.ts';
import { fileOfChunk, firstName } from '../lua-functions.ts';
import { CannotRead, RuntimeMemory } from '../runtime-memory.ts';
import { calledName } from './call-names.ts';
import { detectLua, type LuaBinary } from './detect-lua.ts';
import { type LuaLayout, layoutOf } from './layout.ts';
import { Proto } from './protos.ts';

interface Facts {
  version: string;
}

const ADDRESS = 2 ** EF_LUA_ADDRESS_BITS;
const POSITIONS = 2 ** EF_LUA_POSITION_BITS;
const UNKNOWN_CALL = 2 ** EF_LUA_CALL_BITS - 1;
const UNIT = 16;
/** Types of a value and an object, in the low bits: LUA_TFUNCTION; all that are functions, of either language. */
const TAG_MASK = 0x3f;
const FUNCTION = 6;

export const lua: RuntimePlugin = {
  name: 'lua',
  fileName: /^(lib)?lua\d/,
  id: Runtime.LUA,
  map: RUNTIME_MAPS.LUA,
  frameKind: FrameKind.LUA,
  frameType: 'lua',
  detect(elf) {
    const found = detectLua(elf);
    if (!found) return undefined;
    const facts: Facts = { version: found.version };
    return { runtime: 'lua', version: found.version, facts, entry: encode(found) };
  },
  nameFrame(words, facts, memory, cache) {
    const layout = layoutOf((facts as Facts).version)!;
    try {
      return nameOf(new RuntimeMemory(memory), layout, decode(words), cache);
    } catch (error) {
      if (error instanceof CannotRead) return error.reason;
      throw error;
    }
  },
};

interface Frame {
  /** Of the prototype; of a function that is written in C, of its caller's. */
  address: number;
  isC: boolean;
  argument: number;
  cookie: number;
  position: number;
  /** What has called it. */
  caller: { address: number; position: number } | undefined;
}

/** See ebpf/lua/records.h. */
function decode({ operand, low, high }: FrameWords): Frame {
  const upper = Math.floor(operand / ADDRESS);
  const address = (operand % ADDRESS) * UNIT;
  const call = low >>> EF_LUA_POSITION_BITS;
  const isKnown = high !== EF_LUA_NO_CALLER && call !== UNKNOWN_CALL;
  return {
    address,
    isC: (upper & 1) === 1,
    argument: upper >> 5,
    cookie: (upper >> 1) & 15,
    position: low % POSITIONS,
    caller: isKnown ? { address: address + (high | 0) * UNIT, position: call } : undefined,
  };
}

function nameOf(
  memory: RuntimeMemory,
  layout: LuaLayout,
  frame: Frame,
  cache: NameCache,
): RuntimeFrame | 'replaced' {
  const find = (): string | undefined => {
    if (frame.argument === EF_LUA_FINALIZER) return '__gc';
    if (!frame.caller) return undefined;
    const caller = new Proto(memory, layout, frame.caller.address);
    return calledName(caller, frame.caller.position, frame.argument);
  };
  if (frame.isC) return { name: find() ?? '(C function)', file: '', line: 0, column: 0, startLine: 0 };
  const proto = new Proto(memory, layout, frame.address);
  if (cookieOf(proto) !== frame.cookie) return 'replaced';
  const chunk = proto.chunk();
  const startLine = proto.firstLine();
  const identity = `${startLine} ${chunk}`;
  // code of a file, not of a function in it
  const name = startLine === 0 ? '(main)' : firstName(cache, frame.address, identity, find);
  return {
    name: name ?? `(anonymous:${startLine})`,
    file: fileOfChunk(chunk),
    line: proto.line(frame.position) || startLine,
    column: 0,
    startLine,
  };
}

/** As push_lua() of ebpf/lua/unwind.h. */
function cookieOf(proto: Proto): number {
  const { source, hash, lines } = proto.identity();
  return cookieOfBits(4, [source ^ hash, lines]);
}

function encode({ loop, layout, textBias }: LuaBinary): Uint8Array {
  const { thread, info, flags, proto } = layout;
  const entry = Buffer.alloc(LUA.bytes);
  entry.writeBigUInt64LE(BigInt(loop.start - textBias), LUA.loopStart);
  entry.writeBigUInt64LE(BigInt(loop.end - loop.start), LUA.loopLength);
  const words: readonly [number, number][] = [
    [LUA.threadStatus, thread.status],
    [LUA.threadInfo, thread.info],
    [LUA.threadError, thread.error],
    [LUA.threadPc, thread.pc],
    [LUA.infoFunction, info.function],
    [LUA.infoPc, info.pc],
    [LUA.infoPrevious, info.previous],
    [LUA.infoBytes, info.bytes],
    [LUA.infoStatus, info.status],
    [LUA.freshMask, flags.fresh],
    [LUA.freshValue, flags.freshValue],
    [LUA.tailMask, flags.tail],
    [LUA.finalizerMask, flags.finalizer],
    [LUA.closureProto, layout.closureProto],
    [LUA.protoCode, proto.code],
    [LUA.protoCount, proto.count],
    [LUA.protoSource, proto.source],
    [LUA.protoLines, proto.firstLine],
  ];
  for (const [at, value] of words) entry.writeUInt16LE(value, at);
  entry.writeUInt8(TAG_MASK, LUA.tagMask);
  entry.writeUInt8(FUNCTION, LUA.tagLua);
  entry.writeUInt8(Number(layout.hasCFlag), LUA.hasCFlag);
  entry.writeUInt8(Number(layout.keepsPc), LUA.keepsPc);
  return entry;
}
