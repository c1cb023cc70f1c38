/** PHP 7.3 and later: docs/interpreters/php.md. */
import { FrameKind, PHP, RUNTIME_MAPS, Runtime } from '../../records/records.gen.ts';
import type { NameCache, RuntimePlugin } from '../contract.ts';
import { detectPhp, type PhpBinary, type PhpGlobals } from './detect-php.ts';
import { type PhpFunction, readFunction, sampledFunction } from './functions.ts';
import type { PhpLayout } from './layout.ts';

/** Functions that stand, or stood, at one address, by their cookies. */
type FunctionsAt = Map<number, PhpFunction>;

/** Of one address: those of before are gone, most of them for good. */
const MAX_AT = 16;
const ENTRY_BYTES = 160;
const sizeOf = ({ name, file }: PhpFunction): number => ENTRY_BYTES + 2 * (name.length + file.length);

export const php: RuntimePlugin = {
  name: 'php',
  fileName: /^(lib)?php/,
  id: Runtime.PHP,
  map: RUNTIME_MAPS.PHP,
  frameKind: FrameKind.PHP,
  frameType: 'php',
  detect(elf) {
    const found = detectPhp(elf);
    return found && { runtime: 'php', version: found.version, facts: found.layout, entry: encode(found) };
  },
  takeFunction(read, cache) {
    keep(cache, read.operand, read.cookie, sampledFunction(read));
  },
  /** Words: address of the function; cookie (low) and line (high). */
  nameFrame({ operand, low, high }, facts, memory, cache) {
    let known = functionsAt(cache, operand)?.get(low);
    if (!known) {
      const func = readFunction(memory, facts as PhpLayout, operand, low);
      if (typeof func === 'string') return func;
      keep(cache, operand, low, func);
      known = func;
    }
    const { name, file, firstLine, lastLine } = known;
    // the frame of a function that is being called has no instruction yet
    const line = high >= firstLine && high <= lastLine ? high : firstLine;
    return { name, file, line, column: 0, startLine: firstLine };
  },
};

const functionsAt = (cache: NameCache, address: number): FunctionsAt | undefined =>
  cache.get(address) as FunctionsAt | undefined;

function keep(cache: NameCache, address: number, cookie: number, func: PhpFunction): void {
  let functions = functionsAt(cache, address);
  if (!functions || functions.size >= MAX_AT) {
    for (const old of functions?.values() ?? []) cache.bytes -= sizeOf(old);
    functions = new Map();
    cache.set(address, functions);
  }
  const before = functions.get(cookie);
  cache.bytes += sizeOf(func) - (before ? sizeOf(before) : 0);
  functions.set(cookie, func);
}

function encode({ layout, loop, globals, resume, hasLineRegister, textBias }: PhpBinary): Uint8Array {
  const entry = Buffer.alloc(PHP.bytes);
  entry.writeBigUInt64LE(BigInt(loop.address - textBias), PHP.loopStart);
  entry.writeBigUInt64LE(BigInt(loop.size), PHP.loopLength);
  writeGlobals(entry, globals, layout.currentFrame, textBias);
  if (resume !== undefined) entry.writeBigUInt64LE(BigInt(resume - textBias), PHP.resume);
  entry.writeUInt16LE(layout.functionFile, PHP.functionFile);
  entry.writeUInt8(Number(hasLineRegister), PHP.hasLineRegister);
  entry.writeUInt8(layout.generatorFrame, PHP.generatorFrame);
  entry.writeUInt8(layout.generatorInner, PHP.generatorInner);
  return entry;
}

function writeGlobals(entry: Buffer, globals: PhpGlobals, currentFrame: number, textBias: number): void {
  if (globals.kind === 'variable') {
    entry.writeBigInt64LE(BigInt(globals.address + currentFrame - textBias), PHP.current);
    return;
  }
  entry.writeBigInt64LE(BigInt(currentFrame), PHP.current);
  entry.writeBigInt64LE(BigInt(globals.key - textBias), PHP.threadKey);
  entry.writeBigInt64LE(BigInt(globals.offset - textBias), PHP.globalsOffset);
  entry.writeUInt8(1, PHP.hasThreads);
  entry.writeUInt8(Number(globals.isSlot), PHP.isSlot);
  entry.writeUInt8(Number(globals.isMusl), PHP.isMusl);
}
