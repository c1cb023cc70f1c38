/** LuaJIT 2.1: docs/interpreters/luajit.md. */
import { FrameKind, LUAJIT, LuajitKind, RUNTIME_MAPS, Runtime } from '../../records/records.gen.ts';
import type { FrameWords, NameCache, NameFailure, RuntimeFrame, RuntimePlugin } from '../contract.ts';
import { cookieOfBits } from '../cookie.ts';
import { fileOfChunk, firstName } from '../lua-functions.ts';
import { calledName } from './call-names.ts';
import { detectLuajit, type LuajitBinary } from './detect-luajit.ts';
import { GC32, GC64, type LuajitLayout } from './layout.ts';
import { LuajitMemory, type Proto } from './protos.ts';

const ADDRESS = 2 ** 45;
const POSITIONS = 2 ** 19;

export const luajit: RuntimePlugin = {
  name: 'luajit',
  fileName: /^(lib)?luajit/,
  id: Runtime.LUAJIT,
  map: RUNTIME_MAPS.LUAJIT,
  frameKind: FrameKind.LUAJIT,
  frameType: 'luajit',
  detect(elf) {
    const found = detectLuajit(elf);
    if (!found) return undefined;
    const facts: LuajitLayout = found.code.isGc64 ? GC64 : GC32;
    return { runtime: 'luajit', version: found.version, facts, entry: encode(found) };
  },
  nameFrame(words, facts, memory, cache) {
    const frame = decode(words);
    const objects = new LuajitMemory(memory, facts as LuajitLayout);
    if (frame.kind === LuajitKind.C) return cFunction(objects, frame, cache);
    const isInlined = frame.kind === LuajitKind.INSTRUCTION;
    const proto = isInlined ? objects.protoAround(frame.address) : objects.proto(frame.address);
    if (!proto) return objects.view(frame.address, 4) ? 'replaced' : 'unreadable';
    if (!isInlined && !isCookieOf(objects, proto, frame.cookie)) return 'replaced';
    const position = isInlined ? (frame.address - proto.code) / 4 : frame.position;
    return luaFunction(objects, { ...frame, position }, proto, cache);
  },
};

interface Frame {
  kind: number;
  address: number;
  argument: number;
  cookie: number;
  /** Address of the instruction that called it; 0: none of Lua's did. */
  call: number;
  position: number;
}

/** See ebpf/luajit/records.h. */
function decode({ operand, low, high }: FrameWords): Frame {
  const upper = Math.floor(operand / ADDRESS);
  return {
    address: (operand % ADDRESS) * 4,
    kind: upper & 3,
    argument: (upper >> 2) & 3,
    cookie: upper >> 4,
    call: (high * 2 ** 13 + (low >>> 19)) * 4,
    position: low % POSITIONS,
  };
}

function ownName(objects: LuajitMemory, { call, argument }: Frame): string | undefined {
  const caller = call === 0 ? undefined : objects.protoAround(call);
  return caller && calledName(objects, caller, call, argument);
}

function cFunction(objects: LuajitMemory, frame: Frame, cache: NameCache): RuntimeFrame | NameFailure {
  const { pointerBytes } = objects.layout;
  const code = objects.pointerAt(frame.address + (pointerBytes === 8 ? 0x28 : 0x18));
  if (code === 0) return 'unreadable';
  const name = firstName(cache, frame.address, `${code}`, () => ownName(objects, frame));
  return { name: name ?? '(C function)', file: '', line: 0, column: 0, startLine: 0 };
}

function luaFunction(
  objects: LuajitMemory,
  frame: Frame,
  proto: Proto,
  cache: NameCache,
): RuntimeFrame | NameFailure {
  const chunk = objects.chunkName(proto);
  if (chunk === undefined) return 'malformed';
  const { firstLine, lines } = proto;
  const identity = `${firstLine} ${lines} ${chunk}`;
  // code of a file, not of a function in it
  const name =
    firstLine === 0 ? '(main)' : firstName(cache, proto.address, identity, () => ownName(objects, frame));
  return {
    name: name ?? `(anonymous:${firstLine})`,
    file: fileOfChunk(chunk),
    line: objects.line(proto, frame.position) || firstLine,
    column: 0,
    startLine: firstLine,
  };
}

/** As push_luajit() of ebpf/luajit/trace.h, which may not have been able to read the text's number. */
function isCookieOf(objects: LuajitMemory, { address }: Proto, cookie: number): boolean {
  const { chunk, pointerBytes } = objects.layout;
  const view = objects.view(address + chunk, 16);
  if (!view) return false;
  const [source, lines, text] = [
    view.getBigUint64(0, true),
    view.getBigUint64(8, true),
    objects.pointer(view, 0),
  ];
  const number = objects.view(text + (pointerBytes === 8 ? 12 : 8), 8)?.getBigUint64(0, true) ?? 0n;
  return [source ^ number, source].some((word) => cookieOfBits(4, [word, lines]) === cookie);
}

function encode({ vm, code, textBias }: LuajitBinary): Uint8Array {
  const { frame, vmState } = code;
  const entry = Buffer.alloc(LUAJIT.bytes);
  entry.writeBigUInt64LE(BigInt(vm.start - textBias), LUAJIT.vmStart);
  entry.writeBigUInt64LE(BigInt(vm.end - vm.start), LUAJIT.vmLength);
  entry.writeUInt32LE(code.jitBase, LUAJIT.jitBase);
  entry.writeUInt32LE(vmState ?? 0, LUAJIT.vmState);
  entry.writeUInt32LE(code.traces, LUAJIT.traces);
  entry.writeUInt16LE(code.traceCode, LUAJIT.traceCode);
  entry.writeUInt8(Number(code.isGc64), LUAJIT.isGc64);
  entry.writeUInt8(Number(vmState !== undefined), LUAJIT.hasTraceState);
  entry.writeUInt16LE(frame.bytes, LUAJIT.frameBytes);
  entry.writeUInt16LE(frame.thread, LUAJIT.frameThread);
  entry.writeUInt16LE(frame.instruction, LUAJIT.frameInstruction);
  entry.writeUInt16LE(frame.previous, LUAJIT.framePrevious);
  entry.writeUInt16LE(frame.results, LUAJIT.frameResults);
  entry.writeUInt16LE(frame.fp, LUAJIT.frameFp);
  return entry;
}
