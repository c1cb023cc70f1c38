/** LuaJIT's prototypes (GCproto: what functions of one place in the source share) and strings, read out of a live process. */
import type { ProcessMemory } from '../contract.ts';
import { RuntimeMemory } from '../runtime-memory.ts';
import { type LuajitLayout, TYPE } from './layout.ts';

const STRING_HEAD = 24;
const MAX_NAME = 256;
const MAX_FILE = 4096;
/** Instructions of a function. */
const MAX_INSTRUCTIONS = 1 << 19;
const MAX_PROTO = 64 << 20;
/** How far before an instruction its prototype is looked for, and in which steps. */
const REACH = 1 << 20;
const STEP = 4096;

export interface Proto {
  address: number;
  /** Instructions; the first one is the function's head. */
  count: number;
  /** Address of the first. */
  code: number;
  /** Bytes with all that belongs to it. */
  size: number;
  /** Constants that are objects stand below, numbers above. */
  constants: number;
  objects: number;
  upvalues: number;
  chunk: number;
  firstLine: number;
  lines: number;
  lineInfo: number;
  upvalueNames: number;
  variables: number;
}

export class LuajitMemory {
  readonly layout: LuajitLayout;
  readonly #memory: RuntimeMemory;

  constructor(memory: ProcessMemory, layout: LuajitLayout) {
    this.#memory = new RuntimeMemory(memory);
    this.layout = layout;
  }

  view(address: number, length: number): DataView | undefined {
    const bytes = this.#memory.whole(address, length);
    return bytes && new DataView(bytes.buffer, bytes.byteOffset, length);
  }

  u32(address: number): number | undefined {
    return this.view(address, 4)?.getUint32(0, true);
  }

  pointer(view: DataView, at: number): number {
    const low = view.getUint32(at, true);
    return this.layout.pointerBytes === 4 ? low : (view.getUint32(at + 4, true) % 2 ** 15) * 2 ** 32 + low;
  }

  pointerAt(address: number): number {
    const view = this.view(address, this.layout.pointerBytes);
    return view ? this.pointer(view, 0) : 0;
  }

  /** Undefined where no prototype stands there. */
  proto(address: number): Proto | undefined {
    const view = this.view(address, this.layout.protoBytes);
    return view && this.#protoOf(view, address);
  }

  #protoOf(view: DataView, address: number): Proto | undefined {
    const at = this.layout;
    const count = view.getUint32(at.instructions, true);
    const size = view.getUint32(at.size, true);
    if (view.getUint8(at.type) !== TYPE.proto || count === 0 || count > MAX_INSTRUCTIONS) return undefined;
    if (size > MAX_PROTO || size < at.protoBytes + 4 * count) return undefined;
    const constants = this.pointer(view, at.constants);
    if (constants < address || constants > address + size) return undefined;
    return {
      address,
      count,
      code: address + at.protoBytes,
      size,
      constants,
      objects: view.getUint32(at.objects, true),
      upvalues: view.getUint8(at.upvalues),
      chunk: this.pointer(view, at.chunk),
      firstLine: view.getUint32(at.firstLine, true),
      lines: view.getUint32(at.lines, true),
      lineInfo: this.pointer(view, at.lineInfo),
      upvalueNames: this.pointer(view, at.upvalueNames),
      variables: this.pointer(view, at.variables),
    };
  }

  /** Whose instruction that is: its head stands before. */
  protoAround(instruction: number): Proto | undefined {
    const { protoBytes, type } = this.layout;
    for (let end = instruction; end > instruction - REACH; end -= STEP) {
      // the heads that begin in the step may end behind it
      const from = end - STEP;
      const view = this.view(from, STEP + protoBytes);
      if (!view) return undefined;
      for (let at = STEP - 8 + (-from & 7); at >= 0; at -= 8) {
        if (from + at + protoBytes > instruction || view.getUint8(at + type) !== TYPE.proto) continue;
        const head = new DataView(view.buffer, view.byteOffset + at, protoBytes);
        const proto = this.#protoOf(head, from + at);
        if (proto && instruction < proto.code + 4 * proto.count) return proto;
      }
    }
    return undefined;
  }

  /** Up to its first NUL. Undefined where no string stands there. */
  string(address: number, maxBytes = MAX_NAME): string | undefined {
    const head = this.view(address, STRING_HEAD);
    if (head?.getUint8(this.layout.type) !== TYPE.string) return undefined;
    // reading moves the view's bytes
    const places = this.layout.strings.map(({ length, text }) => ({
      length: head.getUint32(length, true),
      text,
    }));
    const found = places.find(({ length, text }) => this.#memory.part(address + text + length, 1)[0] === 0);
    if (!found || found.length === 0) return found && '';
    const text = this.#memory.part(address + found.text, Math.min(found.length, maxBytes));
    const end = text.indexOf(0);
    return text.length === 0 ? undefined : Buffer.from(end < 0 ? text : text.subarray(0, end)).toString();
  }

  chunkName({ chunk }: Proto): string | undefined {
    return this.string(chunk, MAX_FILE);
  }

  /** Of an instruction by its number; 0: not known. */
  line({ lineInfo, firstLine, lines, count }: Proto, position: number): number {
    if (position >= count || lineInfo === 0) return 0;
    if (position === 0) return firstLine;
    const bytes = lines < 256 ? 1 : lines < 65_536 ? 2 : 4;
    const view = this.view(lineInfo + (position - 1) * bytes, bytes);
    if (!view) return 0;
    const behind =
      bytes === 1 ? view.getUint8(0) : bytes === 2 ? view.getUint16(0, true) : view.getUint32(0, true);
    return behind <= lines ? firstLine + behind : 0;
  }

  /** A constant that is a string. */
  stringConstant({ constants, objects }: Proto, index: number): string | undefined {
    if (index >= objects) return undefined;
    return this.string(this.pointerAt(constants - (index + 1) * this.layout.pointerBytes));
  }

  /** Of an upvalue by its number. */
  upvalueName(proto: Proto, index: number): string | undefined {
    if (index >= proto.upvalues) return undefined;
    const names = this.#debugBytes(proto, proto.upvalueNames);
    let at = 0;
    for (let i = 0; i < index; i++) {
      at = names.indexOf(0, at) + 1;
      if (at === 0) return undefined;
    }
    return textAt(names, at);
  }

  /** Of the variable that a slot holds at an instruction. */
  variableName(proto: Proto, position: number, slot: number): string | undefined {
    const bytes = this.#debugBytes(proto, proto.variables);
    let [at, left, start] = [0, slot, 0];
    while (at < bytes.length && bytes[at] !== 0) {
      const name = at;
      // variables that loops keep for themselves have a number
      at = bytes[at]! <= LAST_INTERNAL ? at + 1 : bytes.indexOf(0, at) + 1;
      if (at === 0) return undefined;
      const [distance, behind] = uleb128(bytes, at);
      const [length, next] = uleb128(bytes, behind);
      at = next;
      start += distance;
      if (start > position) return undefined;
      if (position < start + length && left-- === 0)
        return bytes[name]! <= LAST_INTERNAL ? undefined : textAt(bytes, name);
    }
    return undefined;
  }

  /** To the prototype's end. */
  #debugBytes({ address, size }: Proto, from: number): Uint8Array {
    return from > address && from < address + size
      ? this.#memory.part(from, Math.min(address + size - from, MAX_NAMES))
      : new Uint8Array(0);
  }
}

/** lj_debug.c: VARNAME__MAX - 1. */
const LAST_INTERNAL = 6;
const MAX_NAMES = 64 << 10;

function textAt(bytes: Uint8Array, at: number): string | undefined {
  const end = bytes.indexOf(0, at);
  if (end <= at || end - at > MAX_NAME) return undefined;
  return Buffer.from(bytes.subarray(at, end)).toString();
}

/** Value and where the next one is. */
function uleb128(bytes: Uint8Array, from: number): [number, number] {
  let [value, at] = [0, from];
  for (let scale = 1; at < bytes.length && at < from + 5; scale *= 128) {
    const byte = bytes[at++]!;
    value += (byte & 127) * scale;
    if (byte < 128) break;
  }
  return [value, at];
}
