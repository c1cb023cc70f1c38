/** HotSpot, the JVM of OpenJDK, from JDK 8 on: docs/interpreters/hotspot.md. */
import { FrameKind, HotspotCode, RUNTIME_MAPS, Runtime } from '../../records/records.gen.ts';
import {
  type AttachedRuntime,
  type FrameWords,
  type NameCache,
  type NameFailure,
  type ProcessMemory,
  type RuntimeFrame,
  type RuntimePlugin,
  UnsupportedRuntime,
} from '../contract.ts';
import { CannotRead, RuntimeMemory } from '../runtime-memory.ts';
import { encodeHotspot, readCodeHeaps } from './code-heaps.ts';
import { detectHotspot, type HotspotFile, type TableSymbols } from './detect-hotspot.ts';
import { type FlagHints, readFlag } from './flags.ts';
import { type HotspotLayout, layoutOf, WANTED_TYPES } from './layout.ts';
import { frameOf, isCookieOf, type JavaMethod, readIdentity, readMethod } from './methods.ts';
import { findScopes } from './scopes.ts';
import { readVmTables, type VmTables } from './vm-tables.ts';

const CODE_AT = 2 ** 48;
const COOKIES = 2 ** 32;
const MAX_BLOB_NAME = 128;
const METHOD_BYTES = 256;

export const hotspot: RuntimePlugin = {
  name: 'hotspot',
  fileName: /^(libjvm\.so|java)$/,
  id: Runtime.HOTSPOT,
  map: RUNTIME_MAPS.HOTSPOT,
  frameKind: FrameKind.HOTSPOT,
  frameType: 'jvm',
  detect(elf) {
    const found = detectHotspot(elf);
    if (!found) return undefined;
    const { version, ...facts } = found;
    return { runtime: 'hotspot', version, facts, entry: new Uint8Array(0) };
  },
  attach(memory, base, facts) {
    try {
      return attach(new RuntimeMemory(memory), base, facts as HotspotFile);
    } catch (error) {
      if (error instanceof CannotRead && error.reason === 'unreadable') return undefined;
      if (error instanceof CannotRead)
        throw new UnsupportedRuntime('HotSpot describes itself with no addresses');
      throw error;
    }
  },
  nameFrame(words, facts, memory, cache) {
    const jvm = new Jvm(memory, facts as HotspotLayout, cache);
    try {
      return nameFrame(jvm, words);
    } catch (error) {
      if (error instanceof CannotRead) return error.reason;
      throw error;
    }
  },
};

function attach(
  memory: RuntimeMemory,
  base: number,
  { symbols, major, machine }: HotspotFile,
): AttachedRuntime | undefined {
  const tables = readVmTables(memory, symbols, { base, wanted: WANTED_TYPES });
  if (!tables) return undefined;
  const layout = layoutOf(tables, major);
  const heaps = readCodeHeaps(memory, layout.heaps);
  return (
    heaps && {
      entry: encodeHotspot(layout, heaps, machine),
      facts: layout,
      hasApproximateLines: hasApproximateLines(memory, tables, symbols),
    }
  );
}

const hintsOfFile = new WeakMap<TableSymbols, FlagHints>();

/**
 * Without that flag the compiler notes only at safepoints which method and line an instruction is of: others get those of
 * the next safepoint, and callees that were inlined in between are not seen.
 */
function hasApproximateLines(memory: RuntimeMemory, tables: VmTables, symbols: TableSymbols): boolean {
  const hints = hintsOfFile.get(symbols) ?? new Map();
  hintsOfFile.set(symbols, hints);
  try {
    return readFlag(memory, tables, 'DebugNonSafepoints', hints) === false;
  } catch (error) {
    if (!(error instanceof CannotRead)) throw error;
    return false;
  }
}

type Named = RuntimeFrame | readonly RuntimeFrame[] | NameFailure;

function nameFrame(jvm: Jvm, { operand, low, high }: FrameWords): Named {
  const address = operand % CODE_AT;
  switch (Math.floor(operand / CODE_AT)) {
    case HotspotCode.INTERPRETED:
      return nameInterpreted(jvm, address, { cookie: low, index: high });
    case HotspotCode.COMPILED:
      return nameCompiled(jvm, address, { compileId: low, offset: high });
    default:
      return nameStub(jvm, address, low);
  }
}

function nameInterpreted(
  jvm: Jvm,
  method: number,
  { cookie, index }: { cookie: number; index: number },
): Named {
  const found = jvm.method(method);
  if (!isCookieOf(found.identity, cookie)) return 'replaced';
  return frameOf(found, index);
}

function nameCompiled(
  jvm: Jvm,
  nmethod: number,
  { compileId, offset }: { compileId: number; offset: number },
): Named {
  const { memory, layout } = jvm;
  if (memory.u32(nmethod + layout.blob.compileId) !== compileId) return 'replaced';
  const places = findScopes(memory, layout, nmethod, offset);
  if (places.length > 0) return places.map(({ method, index }) => frameOf(jvm.method(method), index));
  return frameOf(jvm.method(memory.word(nmethod + layout.blob.method)), -1);
}

/** Code of the JVM's own: calls into it, arithmetic on arrays, the interpreter between two methods. */
function nameStub({ memory, layout }: Jvm, blob: number, cookie: number): Named {
  const address = memory.word(blob + layout.blob.name);
  if (address % COOKIES !== cookie) return 'replaced';
  const name = memory.text(address, MAX_BLOB_NAME).trim();
  if (name === '') return 'malformed';
  return { name: `[jvm: ${name}]`, file: '', line: 0, column: 0, startLine: 0 };
}

/** A process, and what is known of its methods. */
class Jvm {
  readonly memory: RuntimeMemory;
  readonly layout: HotspotLayout;
  readonly #cache: NameCache;

  constructor(memory: ProcessMemory, layout: HotspotLayout, cache: NameCache) {
    this.memory = new RuntimeMemory(memory);
    this.layout = layout;
    this.#cache = cache;
  }

  /** Read again where another one has taken its place. */
  method(address: number): JavaMethod {
    const { layout, memory } = this;
    const known = this.#cache.get(address) as JavaMethod | undefined;
    const identity = readIdentity(memory, layout.method, address);
    if (known?.identity.every((word, i) => word === identity[i])) return known;
    const method = readMethod(memory, layout.method, { address, identity, major: layout.major });
    this.#cache.bytes += sizeOf(method) - (known ? sizeOf(known) : 0);
    this.#cache.set(address, method);
    return method;
  }
}

const sizeOf = ({ name, file, lines }: JavaMethod): number =>
  METHOD_BYTES + 2 * (name.length + file.length) + 4 * lines.indices.length;
