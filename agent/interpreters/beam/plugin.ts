/** BEAM, the virtual machine of Erlang and Elixir, from OTP 24 on: docs/interpreters/beam.md. */
import { BEAM, EF_BEAM_COOKIE_BITS, FrameKind, RUNTIME_MAPS, Runtime } from '../../records/records.gen.ts';
import {
  type AttachedRuntime,
  type FrameWords,
  type NameCache,
  type RuntimeFrame,
  type RuntimePlugin,
  UnsupportedRuntime,
} from '../contract.ts';
import { CannotRead, RuntimeMemory } from '../runtime-memory.ts';
import { type BeamFile, detectBeam } from './detect-beam.ts';
import { type BeamTables, findTables } from './find-tables.ts';
import { nameOf } from './function-names.ts';
import { type BeamLayout, layoutOf } from './layout.ts';
import {
  type BeamFunction,
  type BeamModule,
  cookieOf,
  functionAt,
  locate,
  readFunction,
  readModule,
} from './modules.ts';
import type { AtomPlace } from './terms.ts';

const COOKIES = 2 ** EF_BEAM_COOKIE_BITS;
const FUNCTION_BYTES = 256;

export const beam: RuntimePlugin = {
  name: 'beam',
  fileName: /^beam\b/,
  id: Runtime.BEAM,
  map: RUNTIME_MAPS.BEAM,
  frameKind: FrameKind.BEAM,
  frameType: 'beam',
  detect(elf) {
    const found = detectBeam(elf);
    if (!found) return undefined;
    const { version, ...facts } = found;
    return { runtime: 'beam', version, facts, entry: new Uint8Array(0) };
  },
  attach(memory, base, facts) {
    try {
      return attach(new RuntimeMemory(memory), base, facts as BeamFile);
    } catch (error) {
      if (error instanceof CannotRead) return undefined;
      throw error;
    }
  },
  nameFrame(words, facts, memory, cache) {
    try {
      return nameFrame(new RuntimeMemory(memory), facts as AtomPlace, words, cache);
    } catch (error) {
      if (error instanceof CannotRead) return error.reason;
      throw error;
    }
  },
};

function attach(memory: RuntimeMemory, base: number, file: BeamFile): AttachedRuntime {
  const tables = findTables(memory, base, file);
  const threadKey = memory.u32(base + file.threadKey);
  const layout = layoutOf(file.release, file.machine);
  const facts: AtomPlace = { atoms: tables.atoms, layout };
  return { entry: encode(file, layout, { ...tables, threadKey }), facts };
}

interface Places extends BeamTables {
  threadKey: number;
}

function encode(
  file: BeamFile,
  layout: BeamLayout,
  { ranges, active, atoms, switching, threadKey }: Places,
): Uint8Array {
  if (threadKey >= 1024) throw new UnsupportedRuntime(`its pthread key is ${threadKey}`);
  const entry = Buffer.alloc(BEAM.bytes);
  entry.writeBigUInt64LE(BigInt(ranges), BEAM.ranges);
  entry.writeBigUInt64LE(BigInt(active), BEAM.active);
  entry.writeBigUInt64LE(BigInt(atoms), BEAM.atoms);
  entry.writeBigUInt64LE(BigInt(file.dirty.start), BEAM.dirtyStart);
  entry.writeBigUInt64LE(BigInt(file.dirty.bytes), BEAM.dirtyBytes);
  entry.writeBigUInt64LE(BigInt(switching.start), BEAM.switchStart);
  entry.writeUInt32LE(switching.length, BEAM.switchBytes);
  entry.writeUInt32LE(threadKey, BEAM.threadKey);
  entry.writeUInt16LE(file.currentProcess, BEAM.process);
  entry.writeUInt16LE(layout.md5, BEAM.md5);
  entry.writeUInt16LE(layout.registered, BEAM.registered);
  entry.writeUInt16LE(layout.resumed, BEAM.resumed);
  entry.writeUInt8(Number(file.isMusl), BEAM.isMusl);
  entry.writeUInt8(Number(layout.hasNameTerms), BEAM.hasNameTerms);
  return entry;
}

const SHARED: RuntimeFrame = { name: '[beam: shared code]', file: '', line: 0, column: 0, startLine: 0 };

function nameFrame(
  memory: RuntimeMemory,
  place: AtomPlace,
  { operand, low, high }: FrameWords,
  cache: NameCache,
): RuntimeFrame | 'replaced' {
  const start = (high * 2 ** (32 - EF_BEAM_COOKIE_BITS) + Math.floor(low / COOKIES)) * 8;
  if (start === 0) return SHARED;
  const cookie = cookieOf(memory, start, place.layout.md5);
  if (cookie !== low % COOKIES) return 'replaced';
  const module = knownModule(memory, place, { start, cookie }, cache);
  const i = functionAt(module, operand);
  if (operand >= module.jumps) return SHARED;
  const f = knownFunction(memory, place, { module, i }, cache);
  const { at, start: begin } = locate(memory, module, f, operand, place);
  return { name: nameOf(f), file: at.file, line: at.line, column: 0, startLine: begin.line };
}

/** Read again where another one has taken its place. */
function knownModule(
  memory: RuntimeMemory,
  { layout }: AtomPlace,
  { start, cookie }: { start: number; cookie: number },
  cache: NameCache,
): BeamModule {
  const known = cache.get(start) as BeamModule | undefined;
  if (known?.cookie === cookie) return known;
  const module = readModule(memory, start, { functions: layout.functions, cookie });
  cache.bytes += FUNCTION_BYTES + module.functions.byteLength;
  cache.set(start, module);
  return module;
}

function knownFunction(
  memory: RuntimeMemory,
  place: AtomPlace,
  { module, i }: { module: BeamModule; i: number },
  cache: NameCache,
): BeamFunction {
  const known = module.names.get(i);
  if (known) return known;
  const f = readFunction(memory, module, i, place);
  cache.bytes += FUNCTION_BYTES + f.addresses.byteLength;
  module.names.set(i, f);
  return f;
}
