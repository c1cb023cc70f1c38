/** PHP 7.3 and later, builds without threads: docs/interpreters/php.md. */
import { FrameKind, PHP, RUNTIME_MAPS, Runtime } from '../../records/records.gen.ts';
import type { RuntimePlugin } from '../contract.ts';
import { detectPhp, type PhpBinary } from './detect-php.ts';
import { type PhpFunction, readFunction } from './functions.ts';
import type { PhpLayout } from './layout.ts';

/** A function that was read, and which one it was. */
interface Known {
  cookie: number;
  func: PhpFunction;
}

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
  /** Words: address of the function; cookie (low) and line (high). */
  nameFrame({ operand, low, high }, facts, memory, cache) {
    let known = cache.get(operand) as Known | undefined;
    if (known?.cookie !== low) {
      const func = readFunction(memory, facts as PhpLayout, operand, low);
      if (typeof func === 'string') return func;
      cache.bytes += sizeOf(func) - (known ? sizeOf(known.func) : 0);
      known = { cookie: low, func };
      cache.set(operand, known);
    }
    const { name, file, firstLine, lastLine } = known.func;
    // the frame of a function that is being called has no instruction yet
    const line = high >= firstLine && high <= lastLine ? high : firstLine;
    return { name, file, line, column: 0, startLine: firstLine };
  },
};

function encode({ layout, loop, globals, resume, hasLineRegister, textBias }: PhpBinary): Uint8Array {
  const entry = Buffer.alloc(PHP.bytes);
  entry.writeBigUInt64LE(BigInt(loop.address - textBias), PHP.loopStart);
  entry.writeBigUInt64LE(BigInt(loop.size), PHP.loopLength);
  entry.writeBigInt64LE(BigInt(globals + layout.currentFrame - textBias), PHP.current);
  if (resume !== undefined) entry.writeBigUInt64LE(BigInt(resume - textBias), PHP.resume);
  entry.writeUInt32LE(layout.functionFile, PHP.functionFile);
  entry.writeUInt16LE(Number(hasLineRegister), PHP.hasLineRegister);
  entry.writeUInt8(layout.generatorFrame, PHP.generatorFrame);
  entry.writeUInt8(layout.generatorInner, PHP.generatorInner);
  return entry;
}
