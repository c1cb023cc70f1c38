/** For tests: the memory of a JVM that was never there, laid out as JDK 17 or JDK 25 have it. */
import type { ProcessMemory } from '../contract.ts';
import { TABLE_SYMBOLS, type TableSymbols } from './detect-hotspot.ts';

export const BASE = 0x7f00_0000_0000;
const BYTES = 1 << 20;

/** Of JDK 17, by `Type.field`; of the types their sizes. */
const JDK_17: Readonly<Record<string, number>> = {
  CodeBlob: 104,
  'CodeBlob._name': 96,
  'CodeBlob._size': 12,
  'CodeBlob._frame_size': 28,
  'CodeBlob._frame_complete_offset': 20,
  'CodeBlob._code_begin': 32,
  CompiledMethod: 192,
  'CompiledMethod._method': 112,
  'CompiledMethod._deopt_handler_begin': 128,
  'CompiledMethod._deopt_mh_handler_begin': 136,
  'CompiledMethod._scopes_data_begin': 120,
  nmethod: 352,
  'nmethod._compile_id': 304,
  'nmethod._orig_pc_offset': 300,
  'nmethod._metadata_offset': 260,
  'nmethod._scopes_pcs_offset': 268,
  'nmethod._dependencies_offset': 272,
};
/** Of JDK 25, where they differ in kind. */
const JDK_25: Readonly<Record<string, number>> = {
  CodeBlob: 64,
  'CodeBlob._name': 8,
  'CodeBlob._size': 24,
  'CodeBlob._frame_size': 44,
  'CodeBlob._frame_complete_offset': 54,
  'CodeBlob._code_offset': 36,
  'CodeBlob._relocation_size': 28,
  'CodeBlob._mutable_data': 16,
  nmethod: 224,
  'nmethod._method': 80,
  'nmethod._deopt_handler_offset': 176,
  'nmethod._compile_id': 212,
  'nmethod._orig_pc_offset': 208,
  'nmethod._scopes_pcs_offset': 196,
  'nmethod._scopes_data_offset': 200,
  'nmethod._immutable_data': 96,
};
const BOTH: Readonly<Record<string, number>> = {
  CodeHeap: 344,
  'CodeHeap._memory': 8,
  'CodeHeap._segmap': 120,
  'CodeHeap._log2_segment_size': 256,
  HeapBlock: 16,
  GrowableArrayBase: 8,
  'GrowableArrayBase._len': 0,
  'GrowableArray<int>._data': 8,
  Method: 88,
  'Method._constMethod': 8,
  ConstMethod: 48,
  'ConstMethod._constants': 8,
  'ConstMethod._code_size': 32,
  'ConstMethod._flags': 28,
  'ConstMethod._name_index': 34,
  ConstantPool: 72,
  'ConstantPool._pool_holder': 24,
  'ConstantPool._source_file_name_index': 54,
  Klass: 208,
  'Klass._name': 24,
  Symbol: 8,
  'Symbol._length': 4,
  'Symbol._body': 6,
  VirtualSpace: 112,
  'VirtualSpace._low_boundary': 0,
  'VirtualSpace._high_boundary': 8,
};

export function encodeUnsigned5(value: number, major: number): number[] {
  const excess = major >= 20 ? 1 : 0;
  const last = 192 - excess;
  const bytes: number[] = [];
  let rest = value;
  while (rest >= last && bytes.length < 4) {
    rest -= last;
    bytes.push(192 + (rest % 64));
    rest = Math.floor(rest / 64);
  }
  return [...bytes, rest + excess];
}

export class FakeJvm implements ProcessMemory {
  readonly major: number;
  readonly symbols: TableSymbols;
  /** Of the layout's fields: a test may change or delete some before {@link describe}. */
  readonly offsets: Record<string, number>;
  readonly #bytes = Buffer.alloc(BYTES);
  /** Addresses of those that were made. */
  readonly methods: number[] = [];
  #end = 64;
  #random = 1;

  constructor(major: 17 | 25) {
    this.major = major;
    this.offsets = { ...BOTH, ...(major === 17 ? JDK_17 : JDK_25) };
    this.symbols = Object.fromEntries(
      Object.keys(TABLE_SYMBOLS).map((key) => [key, this.reserve(8) - BASE]),
    ) as unknown as TableSymbols;
  }

  read(address: number, length: number): Uint8Array | undefined {
    const at = address - BASE;
    return at >= 0 && at < BYTES ? this.#bytes.subarray(at, at + length) : undefined;
  }

  reserve(bytes: number): number {
    const at = this.#end;
    this.#end = (at + bytes + 15) & ~15;
    if (this.#end > BYTES) throw new Error('the made JVM is full');
    return BASE + at;
  }

  word(address: number, value: number): void {
    this.#bytes.writeBigUInt64LE(BigInt(value), address - BASE);
  }

  int(address: number, value: number): void {
    this.#bytes.writeInt32LE(value, address - BASE);
  }

  short(address: number, value: number): void {
    this.#bytes.writeUInt16LE(value, address - BASE);
  }

  put(bytes: readonly number[] | Uint8Array): number {
    const address = this.reserve(bytes.length);
    this.#bytes.set(bytes, address - BASE);
    return address;
  }

  field(name: string): number {
    return this.offsets[name]!;
  }

  /** Writes the tables of types and fields; `heaps`: address of the list of heaps. */
  describe(heaps: number): void {
    const variable = this.reserve(8);
    this.word(variable, heaps);
    const text = (value: string): number => this.put(Buffer.from(`${value}\0`));
    const fields = Object.keys(this.offsets).filter((name) => name.includes('.'));
    const structs = this.reserve((fields.length + 2) * 48);
    for (const [i, name] of fields.entries()) {
      const [type, member] = name.split(/\.(.*)/s) as [string, string];
      const isShort = this.major === 25 && member === '_frame_complete_offset';
      this.word(structs + i * 48, text(type));
      this.word(structs + i * 48 + 8, text(member));
      this.word(structs + i * 48 + 16, text(isShort ? 'int16_t' : 'int'));
      this.word(structs + i * 48 + 32, this.offsets[name]!);
    }
    const last = structs + fields.length * 48;
    this.word(last, text('CodeCache'));
    this.word(last + 8, text('_heaps'));
    this.word(last + 40, variable);
    const sizes = Object.keys(this.offsets).filter((name) => !name.includes('.'));
    const types = this.reserve((sizes.length + 1) * 40);
    for (const [i, name] of sizes.entries()) {
      this.word(types + i * 40, text(name));
      this.word(types + i * 40 + 32, this.offsets[name]!);
    }
    const values: Record<keyof TableSymbols, number> = {
      structs,
      structTypeName: 0,
      structFieldName: 8,
      structTypeString: 16,
      structOffset: 32,
      structAddress: 40,
      structStride: 48,
      types,
      typeName: 0,
      typeSize: 32,
      typeStride: 40,
    };
    for (const [key, value] of Object.entries(values)) this.symbol(key as keyof TableSymbols, value);
  }

  symbol(key: keyof TableSymbols, value: number): void {
    this.word(BASE + this.symbols[key], value);
  }

  /** A list of heaps with these reserved ranges. */
  heaps(ranges: readonly (readonly [start: number, end: number])[]): number {
    const list = this.reserve(ranges.length * 8);
    for (const [i, [start, end]] of ranges.entries()) {
      const heap = this.reserve(this.field('CodeHeap'));
      this.word(heap + this.field('CodeHeap._memory'), start);
      this.word(heap + this.field('CodeHeap._memory') + 8, end);
      this.word(heap + this.field('CodeHeap._segmap'), BASE + 16);
      this.int(heap + this.field('CodeHeap._log2_segment_size'), 7);
      this.word(list + i * 8, heap);
    }
    const array = this.reserve(16);
    this.int(array, ranges.length);
    this.word(array + 8, list);
    return array;
  }

  symbolOf(text: string, length = Buffer.byteLength(text)): number {
    const random = this.#random++;
    return this.put([1, 0, random, 0, length & 0xff, length >> 8, ...Buffer.from(text)]);
  }

  /** Another symbol in place of one as long. */
  rename(symbol: number, text: string): void {
    this.#bytes.set([2, 0, this.#random++], symbol - BASE);
    this.#bytes.write(text, symbol - BASE + 6);
  }

  /** A Method of a class; `lines` as its ConstMethod has them, `code` bytes of bytecode. */
  method(
    name: string,
    {
      className,
      file = '',
      lines = [],
      code = 8,
    }: { className: string; file?: string; lines?: number[]; code?: number },
  ): number {
    const pool = this.reserve(this.field('ConstantPool') + 4 * 8);
    const entry = (i: number): number => pool + this.field('ConstantPool') + i * 8;
    this.word(entry(1), this.symbolOf(name) + 1);
    if (file !== '') this.word(entry(2), this.symbolOf(file));
    const klass = this.reserve(64);
    this.word(klass + this.field('Klass._name'), this.symbolOf(className));
    this.word(pool + this.field('ConstantPool._pool_holder'), klass);
    this.short(pool + this.field('ConstantPool._source_file_name_index'), file === '' ? 0 : 2);
    const constMethod = this.put([
      ...new Array<number>(this.field('ConstMethod') + code).fill(0),
      ...lines,
      0,
    ]);
    this.word(constMethod + this.field('ConstMethod._constants'), pool);
    this.short(constMethod + this.field('ConstMethod._code_size'), code);
    this.short(constMethod + this.field('ConstMethod._flags'), lines.length > 0 ? 1 : 0);
    this.short(constMethod + this.field('ConstMethod._name_index'), 1);
    const method = this.reserve(this.field('Method'));
    this.word(method + this.field('Method._constMethod'), constMethod);
    this.methods.push(method);
    return method;
  }
}
