/**
 * From a program counter in WebAssembly code to the function. A frame of such code holds its instance, from which leads
 *
 *   instance → (of V8 12 on its trusted data →) WasmModuleObject → Managed → shared_ptr → NativeModule
 *
 * The last is a C++ object. It owns the module's binary and a std::map of all compiled code by address, also such
 * as was replaced by better code and still runs. Where in it they are changes from version to version; so they are looked for by
 * what they point to: bytes that begin like a module, and a tree whose nodes hold code that points back.
 */
import { LRUCache } from 'lru-cache';
import type { RuntimeFrame } from '../contract.ts';
import { type Heap, type HeapAddress, smiAt, wordAt } from './heap.ts';
import { readText } from './strings.ts';
import { inlinedAt } from './wasm-inlining.ts';
import { functionName, HEADER, type ReadBinary, readWasmModule, type WasmModule } from './wasm-module.ts';

/** Address of an object of C++. */
type Address = number;

interface Known {
  module: WasmModule;
  read: ReadBinary;
  /** What V8 calls the module: `wasm://wasm/NAME-HASH`; '' if that was not found yet. */
  file: string;
  /** In the NativeModule. */
  binaryAt: number;
  binary: Address;
  compiled: Compiled;
}

/** Where compiled code is found. */
interface Compiled {
  /** In the NativeModule: the root of the tree. */
  rootAt: number;
  /** In a node: the left child; the right one follows. */
  leftAt: number;
  /** In the NativeModule: begin and end of the vector. */
  vectorAt: number;
}

/** In a WasmModuleObject. */
const MANAGED_AT = 24;
/** Behind a list in some versions. */
const SCRIPT_AT = [32, 40];
const FOREIGN_AT = 8;
const SHARED_POINTER_AT = 24;
const NATIVE_MODULE_BYTES = 1024;
const MAX_BINARY_BYTES = 1 << 30;
/** arm64 has 48 bits, and memory of threads lies at their upper end. */
const MAX_ADDRESS = 2 ** 48;
/**
 * std::map in libstdc++ and in libc++: nodes have three pointers and a colour in different order, then key and value. From the
 * root's place: its header, to which the root refers as its parent; what an empty one's first node is; and where the map ends.
 */
const MAPS = [
  { leftAt: 16, parentAt: 8, header: -8, firstAt: 8, end: 32 },
  { leftAt: 0, parentAt: 16, header: 0, firstAt: -8, end: 16 },
] as const;
const KEY_AT = 32;
const VALUE_AT = 40;
const NODE_BYTES = 48;
const MAX_DEPTH = 64;
/** Code in the vector. */
const MAX_NEW = 1024;
const CODE_BYTES = 64;
const CODE_START_AT = 8;
/** Of one process: what is remembered of where names are. */
const MAX_NAMES_BYTES = 8 << 20;
/** Of one without functions. */
const MODULE_BYTES = 1024;
const MAX_FILE_CHARS = 4096;

/** The WebAssembly modules of one process. */
export class WasmModules {
  readonly #heap: Heap;
  /** By address of the NativeModule. */
  readonly #known = new LRUCache<Address, Known>({
    maxSize: MAX_NAMES_BYTES,
    sizeCalculation: ({ module }) => module.namesAt.byteLength + MODULE_BYTES,
  });

  constructor(heap: Heap) {
    this.#heap = heap;
  }

  /** `instance`: what the frame holds. Inlined functions first; undefined where the function is not found. */
  frames(instance: HeapAddress, pc: number): RuntimeFrame[] | undefined {
    const object = this.#follow(instance, this.#heap.layout.wasm.moduleObject);
    return this.#framesIn(object, (native, known) => this.#functionsAt(native, known, pc));
  }

  /** Of a function that V8 has inlined into JavaScript; `data`: what the function is in JavaScript. */
  exported(data: HeapAddress | undefined): RuntimeFrame | undefined {
    const { exported } = this.#heap.layout.wasm;
    if (!exported || !this.#heap.isA(data, exported.type)) return undefined;
    const word = this.#heap.bytes(data + exported.index, 8);
    const index = (word && smiAt(word, 0)) ?? -1;
    if (index < 0) return undefined;
    return this.#framesIn(this.#follow(data, exported.moduleObject), () => [index])?.[0];
  }

  /** `object`: the WasmModuleObject. */
  #framesIn(
    object: HeapAddress | undefined,
    find: (native: Address, known: Known) => number[] | undefined,
  ): RuntimeFrame[] | undefined {
    const managed = object === undefined ? undefined : this.#heap.pointer(object, MANAGED_AT);
    const native = managed === undefined ? undefined : this.#nativeModule(managed);
    const known = native === undefined ? undefined : this.#moduleOf(native);
    const indices = known && find(native!, known);
    if (!indices || indices.some((index) => index >= known.module.namesAt.length)) return undefined;
    const { read, module } = known;
    // its script comes after its code
    known.file ||= this.#urlOf(object!);
    const { file } = known;
    return indices.map((index) => ({
      ...{ name: functionName(read, module, index), file },
      ...{ line: 0, column: 0, startLine: 0 },
    }));
  }

  #follow(from: HeapAddress, fields: readonly number[]): HeapAddress | undefined {
    let object: HeapAddress | undefined = from;
    for (const at of fields) object = object === undefined ? undefined : this.#heap.pointer(object, at);
    return object;
  }

  #nativeModule(managed: HeapAddress): Address | undefined {
    let address: Address | undefined = managed;
    for (const at of [FOREIGN_AT, SHARED_POINTER_AT, 0])
      address = address === undefined ? undefined : this.#heap.word(address + at);
    return address !== undefined && isAddress(address) ? address : undefined;
  }

  #moduleOf(native: Address): Known | undefined {
    const known = this.#known.get(native);
    if (known && this.#binaryAt(native + known.binaryAt)?.data === known.binary) return known;
    const read = this.#readModule(native);
    if (read) this.#known.set(native, read);
    return read;
  }

  #readModule(native: Address): Known | undefined {
    const { byteLength } = this.#heap.bytesUpTo(native, NATIVE_MODULE_BYTES);
    for (let binaryAt = 0; binaryAt + 8 <= byteLength; binaryAt += 8) {
      const found = this.#binaryAt(native + binaryAt);
      if (!found) continue;
      const read: ReadBinary = (at, length) => this.#read(found, at, length);
      const module = readWasmModule(read, found.length);
      const compiled = module && this.#findCompiled(native, byteLength);
      if (compiled) return { module, read, file: '', binaryAt, binary: found.data, compiled };
    }
    return undefined;
  }

  /** What a pointer to a vector of bytes that begins like a module points to. */
  #binaryAt(at: Address): { data: Address; length: number } | undefined {
    const owned = this.#heap.word(at);
    const vector = owned !== undefined && isAddress(owned) ? this.#heap.bytes(owned, 16) : undefined;
    if (!vector) return undefined;
    const [data, length] = [wordAt(vector, 0), wordAt(vector, 8)];
    if (length < HEADER.length || length > MAX_BINARY_BYTES) return undefined;
    const head = this.#heap.bytesUpTo(data, HEADER.length);
    return HEADER.equals(bytesOf(head)) ? { data, length } : undefined;
  }

  #read({ data, length }: { data: Address; length: number }, at: number, wanted: number): Uint8Array {
    return bytesOf(this.#heap.bytesUpTo(data + at, Math.max(0, Math.min(wanted, length - at))));
  }

  #findCompiled(native: Address, bytes: number): Compiled | undefined {
    for (let rootAt = 8; rootAt + 8 <= bytes; rootAt += 8) {
      const root = this.#heap.word(native + rootAt);
      const map = MAPS.find((one) => this.#isMap(native + rootAt, root ?? 0, one));
      if (!map) continue;
      const { leftAt, end } = map;
      const compiled = { rootAt, leftAt, vectorAt: rootAt + end };
      const code = root === 0 ? this.#newCode(native, compiled)[0] : this.#heap.word(root! + VALUE_AT);
      if (code !== undefined && this.#readCode(native, code)) return compiled;
    }
    return undefined;
  }

  #isMap(at: Address, root: Address, { parentAt, header, firstAt }: (typeof MAPS)[number]): boolean {
    if (root === 0) return this.#heap.word(at + firstAt) === at + header;
    return isAddress(root) && this.#heap.word(root + parentAt) === at + header;
  }

  /** Indices of the function whose code holds the program counter, and of those inlined into it there, these first. */
  #functionsAt(native: Address, { compiled }: Known, pc: number): number[] | undefined {
    const address = this.#codeBelow(native, compiled, pc);
    const inTree = address === undefined ? undefined : this.#functionsIn(native, address, pc);
    if (inTree) return inTree;
    for (const code of this.#newCode(native, compiled)) {
      const indices = this.#functionsIn(native, code, pc);
      if (indices) return indices;
    }
    return undefined;
  }

  /** The code in the tree that begins last before an address. */
  #codeBelow(native: Address, { rootAt, leftAt }: Compiled, pc: number): Address | undefined {
    let below: Address | undefined;
    let at = this.#heap.word(native + rootAt);
    for (let depth = 0; depth < MAX_DEPTH && at !== undefined && isAddress(at); depth++) {
      const node = this.#heap.bytes(at, NODE_BYTES);
      if (!node) return undefined;
      const isBelow = wordAt(node, KEY_AT) <= pc;
      if (isBelow) below = wordAt(node, VALUE_AT);
      at = wordAt(node, isBelow ? leftAt + 8 : leftAt);
    }
    return below;
  }

  #newCode(native: Address, { vectorAt }: Compiled): Address[] {
    const ends = this.#heap.bytes(native + vectorAt, 16);
    if (!ends) return [];
    const [begin, end] = [wordAt(ends, 0), wordAt(ends, 8)];
    if (!isAddress(begin) || !isAddress(end) || end <= begin) return [];
    const view = this.#heap.bytesUpTo(begin, Math.min(end - begin, MAX_NEW * 8));
    return Array.from({ length: Math.floor(view.byteLength / 8) }, (_, i) => wordAt(view, i * 8));
  }

  #readCode(native: Address, address: Address): DataView | undefined {
    const code = isAddress(address) ? this.#heap.bytes(address, CODE_BYTES) : undefined;
    return code && wordAt(code, 0) === native ? code : undefined;
  }

  /** Undefined where the code is other code, or no function's. */
  #functionsIn(native: Address, address: Address, pc: number): number[] | undefined {
    const code = this.#readCode(native, address);
    if (!code) return undefined;
    const { codeSize, codeIndex } = this.#heap.layout.wasm;
    const offset = pc - wordAt(code, CODE_START_AT);
    const index = code.getInt32(codeIndex, true);
    if (offset < 0 || offset >= code.getUint32(codeSize, true) || index < 0) return undefined;
    return [...inlinedAt(this.#heap, code, offset), index];
  }

  #urlOf(object: HeapAddress): string {
    const { types, script: fields } = this.#heap.layout;
    for (const at of SCRIPT_AT) {
      const script = this.#heap.pointer(object, at);
      if (this.#heap.isA(script, types.script))
        return readText(this.#heap, this.#heap.pointer(script, fields.name), MAX_FILE_CHARS) ?? '';
    }
    return '';
  }
}

const isAddress = (word: number): boolean => word > 0 && word < MAX_ADDRESS && word % 8 === 0;

const bytesOf = ({ buffer, byteOffset, byteLength }: DataView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
