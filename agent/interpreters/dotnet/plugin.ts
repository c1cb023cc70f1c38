/** .NET (CoreCLR), from .NET 6 on: docs/interpreters/dotnet.md. */
import { MalformedMetadata, Metadata } from '../../../common/dotnet/metadata.ts';
import { methodName } from '../../../common/dotnet/method-names.ts';
import { moduleIdOf } from '../../../common/dotnet/pe.ts';
import {
  DotnetCode,
  EF_DOTNET_COOKIE_SHIFT,
  FrameKind,
  RUNTIME_MAPS,
  Runtime,
} from '../../records/records.gen.ts';
import {
  type AssemblyPlace,
  type AttachedRuntime,
  type FrameWords,
  type NameCache,
  type NameFailure,
  type RuntimeFrame,
  type RuntimePlugin,
  UnsupportedRuntime,
} from '../contract.ts';
import { CannotRead, RuntimeMemory } from '../runtime-memory.ts';
import { placesOf, precompiledPlaceOf } from './debug-info.ts';
import { readDescriptor } from './descriptor.ts';
import { type DotnetFile, detectDotnet } from './detect-dotnet.ts';
import type { MethodPlace } from './inline-tree.ts';
import { type DotnetLayout, encodeDotnet, layoutOf } from './layout.ts';
import { namedCookie, namesAround, readMethodDesc } from './method-desc.ts';
import { findMetadata, readerAt } from './module-metadata.ts';
import { precompiledMapOf } from './precompiled-map.ts';
import { findSection, methodInImage } from './sections.ts';

const CODE_AT = 2 ** 48;
const COOKIE_UNIT = 2 ** EF_DOTNET_COOKIE_SHIFT;
const COOKIES = 2 ** 32;
const METHOD_BYTES = 128;
const MODULE_BYTES = 1024;
const MAX_PATH_BYTES = 4096;
/** The first four bytes of a file. */
const ELF = 0x464c457f;

export const dotnet: RuntimePlugin = {
  name: 'dotnet',
  fileName: /^libcoreclr\.so$/,
  id: Runtime.DOTNET,
  map: RUNTIME_MAPS.DOTNET,
  frameKind: FrameKind.DOTNET,
  frameType: 'dotnet',
  linesFrom: 'pdb',
  detect(elf) {
    const found = detectDotnet(elf);
    if (!found) return undefined;
    const { version, ...facts } = found;
    return { runtime: 'dotnet', version, facts, entry: new Uint8Array(0) };
  },
  attach(memory, base, facts) {
    try {
      return attach(new RuntimeMemory(memory), base, facts as DotnetFile);
    } catch (error) {
      if (error instanceof CannotRead && error.reason === 'unreadable') return undefined;
      if (error instanceof CannotRead)
        throw new UnsupportedRuntime('.NET describes itself with no addresses');
      throw error;
    }
  },
  nameFrame(words, facts, memory, cache) {
    const process = new Clr(new RuntimeMemory(memory), facts as DotnetLayout, cache);
    try {
      return nameFrame(process, words);
    } catch (error) {
      if (error instanceof CannotRead) return error.reason;
      if (error instanceof MalformedMetadata) return 'malformed';
      throw error;
    }
  },
};

function attach(
  memory: RuntimeMemory,
  base: number,
  { major, start, codeEnd, dacTable, descriptor }: DotnetFile,
): AttachedRuntime | undefined {
  // of another mapping of the file: a single-file application has images in it
  if (memory.u32(base + start) !== ELF) return undefined;
  // the first entry of the table, which the runtime fills as it starts, is the address of the map, whose first level is
  // empty until then, or of the list, which is
  const table = base + dacTable;
  const entry = major === 6 ? memory.u32(table) : memory.word(table);
  const ranges = major === 6 ? base + start + entry : entry;
  if (entry === 0 || memory.word(ranges) === 0) return undefined;
  const described = descriptor === 0 ? undefined : readDescriptor(memory, base + descriptor);
  if (major >= 10 && !described) throw new UnsupportedRuntime(`.NET ${major} does not describe itself`);
  const layout = layoutOf(major, ranges, described);
  return { entry: encodeDotnet(layout, codeEnd), facts: layout };
}

type Named = RuntimeFrame | readonly RuntimeFrame[] | NameFailure;

function nameFrame(clr: Clr, { operand, low, high }: FrameWords): Named {
  const address = operand % CODE_AT;
  switch (Math.floor(operand / CODE_AT)) {
    case DotnetCode.JITTED: {
      const { memory, layout } = clr;
      const header = memory.word(address - 8);
      const methodDesc = memory.word(header + layout.header.methodDesc);
      if (!isCookieOf(clr, methodDesc, low)) return 'replaced';
      const debugInfo = memory.word(header + layout.header.debugInfo);
      return framesOf(clr, methodDesc, () =>
        debugInfo === 0 || !layout.mapForm
          ? []
          : placesOf(memory, layout, { methodDesc, debugInfo, offset: high }),
      );
    }
    case DotnetCode.PRECOMPILED: {
      const section = findSection(clr.memory, clr.layout, address);
      if (!section || cookieOf(section.module) !== low) return 'replaced';
      const found = methodInImage(clr.memory, clr.layout, section, address);
      if (!found) return 'malformed';
      const { methodDesc, start } = found;
      return framesOf(clr, methodDesc, () => {
        const map = precompiledMapOf(clr.memory, clr.layout, section, found);
        const offset = address + high - start;
        return map === undefined ? [] : [precompiledPlaceOf(clr.memory, { methodDesc, map, offset })];
      });
    }
    default:
      return frameOf({ name: '[clr: stub]' });
  }
}

const cookieOf = (address: number): number => Math.floor(address / COOKIE_UNIT) % COOKIES;

/** Of a method alone, or with the names of an assembly that may be unloaded. */
function isCookieOf({ memory, layout }: Clr, methodDesc: number, cookie: number): boolean {
  if (cookieOf(methodDesc) === cookie) return true;
  try {
    const named = namedCookie(memory, layout, methodDesc) >> BigInt(EF_DOTNET_COOKIE_SHIFT);
    return Number(named & 0xffff_ffffn) === cookie;
  } catch (error) {
    if (error instanceof CannotRead) return false;
    throw error;
  }
}

function frameOf({ name, place }: Method, ilOffset?: number): RuntimeFrame {
  const frame = { name, file: '', line: 0, column: 0, startLine: 0 };
  return place && ilOffset !== undefined ? { ...frame, assembly: { ...place, ilOffset } } : frame;
}

/** The method alone where what is noted for debuggers makes no sense, or there is nothing. */
function framesOf(clr: Clr, methodDesc: number, placesOf: () => readonly MethodPlace[]): RuntimeFrame[] {
  const own = frameOf(clr.method(methodDesc));
  try {
    const frames = placesOf().map((place) => frameOf(clr.method(place.methodDesc), place.ilOffset));
    return frames.length > 0 ? frames : [own];
  } catch (error) {
    if (error instanceof CannotRead || error instanceof MalformedMetadata) return [own];
    throw error;
  }
}

interface Method {
  name: string;
  /** Undefined where it is of no assembly that came from a file. */
  place?: Omit<AssemblyPlace, 'ilOffset'> | undefined;
}

interface KnownModule {
  /** What stands where its assembly has its name: one that takes an unloaded one's place has others. */
  names: readonly bigint[];
  /** Address of its metadata's root. */
  root: number;
  /** '' where it came from no file. */
  file: string;
  moduleId: string;
  /** Of methods, by row. */
  methods: Map<number, string>;
}

/** A process, and what is known of its methods. */
class Clr {
  readonly memory: RuntimeMemory;
  readonly layout: DotnetLayout;
  readonly #cache: NameCache;

  constructor(memory: RuntimeMemory, layout: DotnetLayout, cache: NameCache) {
    this.memory = memory;
    this.layout = layout;
    this.#cache = cache;
  }

  method(address: number): Method {
    const token = readMethodDesc(this.memory, this.layout, address);
    if (typeof token === 'string') return { name: token === '' ? '[clr: dynamic method]' : token };
    const { row } = token;
    const module = this.#moduleOf(token.module);
    const { file, moduleId } = module;
    return { name: this.#nameOf(module, row), place: file === '' ? undefined : { file, moduleId, row } };
  }

  #nameOf({ root, methods }: KnownModule, row: number): string {
    const known = methods.get(row);
    if (known !== undefined) return known;
    const name = methodName(new Metadata(readerAt(this.memory, root)), row);
    this.#cache.bytes += METHOD_BYTES + 2 * name.length;
    methods.set(row, name);
    return name;
  }

  #moduleOf(module: number): KnownModule {
    // by the name, which lies in the metadata
    const simpleName = this.memory.word(module + this.layout.simpleName);
    const known = this.#cache.get(simpleName) as KnownModule | undefined;
    const names = namesAround(this.memory, simpleName);
    if (known?.names.every((word, i) => word === names[i])) return known;
    const root = findMetadata(this.memory, simpleName);
    const moduleId = moduleIdOf(new Metadata(readerAt(this.memory, root)));
    const found = { names, root, file: this.#fileOf(module), moduleId, methods: new Map() };
    this.#cache.bytes += MODULE_BYTES;
    this.#cache.set(simpleName, found);
    return found;
  }

  #fileOf(module: number): string {
    let at = module;
    for (const offset of this.layout.path) {
      at = this.memory.word(at + offset);
      if (at === 0) return '';
    }
    const path = this.memory.wideText(at, MAX_PATH_BYTES);
    return path.startsWith('/') ? path : '';
  }
}
