/** Where HotSpot keeps what unwinding and naming need, as its tables say; each offset is checked before it is used. */
import { EF_HOTSPOT_BLOB_BYTES } from '../../records/records.gen.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { FLAG_TYPES } from './flags.ts';
import type { VmTables } from './vm-tables.ts';

/** A number in an object, and whether it is an offset from where the object begins or an address. */
export interface Place {
  at: number;
  isOffset: boolean;
}

/** Of a CodeBlob and of what compiled methods have beside: byte offsets. */
export interface BlobLayout {
  name: number;
  /** Of its bytes, header and all. */
  size: number;
  frameSize: number;
  /** JDK 23 and later have 16 bits for it. */
  frameComplete: { at: number; isShort: boolean };
  codeBegin: Place;
  method: number;
  compileId: number;
  deopt: Place;
  /** 0: there is none. */
  deoptMethodHandle: number;
  origPc: number;
}

/** Where an nmethod has its debug information: the versions differ most here. */
export interface ScopesLayout {
  /** Of the table of program counters, an offset in `container`. */
  pcs: number;
  /** Where that table ends. */
  pcsEnd: number;
  data: Place;
  /** Pointer to what the offsets count from; -1: from the nmethod. */
  container: number;
  /** JDK 25 and later: pointer to a part whose first `relocationSize` bytes are others. */
  mutable: { at: number; relocationSize: number } | undefined;
  /** Pointers to methods: offset from the nmethod, or of 16 bits from the end of its code (JDK 23, 24). */
  metadata: { at: number; fromData: number } | undefined;
}

export interface MethodLayout {
  constMethod: number;
  constants: number;
  /** Of a ConstMethod, where the bytecodes follow. */
  constBytes: number;
  codeSize: number;
  flags: number;
  nameIndex: number;
  poolBytes: number;
  poolHolder: number;
  /** In the constant pool, or up to JDK 14 in the class. */
  sourceFile: { at: number; isInClass: boolean };
  className: number;
  symbolLength: number;
  symbolBody: number;
  /** Bits of a symbol's first word that hold its number of references, and what is below. */
  symbolShift: number;
}

export interface HeapsLayout {
  /** Variable that points to the list of heaps, or up to JDK 8 to the only heap. */
  variable: number;
  isList: boolean;
  listLength: number;
  listData: number;
  memory: number;
  segments: number;
  log2SegmentSize: number;
  low: number;
  high: number;
  blockHeader: number;
}

export interface HotspotLayout {
  /** Of the JDK. */
  major: number;
  blob: BlobLayout;
  scopes: ScopesLayout;
  method: MethodLayout;
  heaps: HeapsLayout;
}

/** Types whose fields are looked at. */
export const WANTED_TYPES: ReadonlySet<string> = new Set([
  'CodeBlob',
  'nmethod',
  'CompiledMethod',
  'CodeCache',
  'CodeHeap',
  'HeapBlock',
  'GenericGrowableArray',
  'GrowableArrayBase',
  'GrowableArray<int>',
  'Method',
  'ConstMethod',
  'ConstantPool',
  'InstanceKlass',
  'Klass',
  'Symbol',
  'PcDesc',
  'VirtualSpace',
  ...FLAG_TYPES,
]);

/** Throws {@link UnsupportedRuntime}: the message says what is missing. */
export function layoutOf(tables: VmTables, major: number): HotspotLayout {
  const types = new Types(tables);
  return {
    major,
    blob: blobLayout(types),
    scopes: scopesLayout(types),
    method: methodLayout(types),
    heaps: heapsLayout(types),
  };
}

/** Fields of an nmethod were part of CompiledMethod from JDK 9 to 22. */
const NMETHOD = ['nmethod', 'CompiledMethod'];

function blobLayout(types: Types): BlobLayout {
  const complete = types.field(['CodeBlob'], ['_frame_complete_offset']);
  const isShort = types.typeOf('CodeBlob._frame_complete_offset').includes('16');
  return inHead({
    name: types.field(['CodeBlob'], ['_name']),
    size: types.field(['CodeBlob'], ['_size']),
    frameSize: types.field(['CodeBlob'], ['_frame_size']),
    frameComplete: { at: complete, isShort },
    codeBegin: types.place(['CodeBlob'], { address: ['_code_begin'], offset: ['_code_offset'] }),
    method: types.field(NMETHOD, ['_method']),
    compileId: types.field(NMETHOD, ['_compile_id']),
    deopt: types.place(NMETHOD, {
      address: ['_deopt_handler_begin'],
      offset: ['_deoptimize_offset', '_deopt_handler_offset', '_deopt_handler_entry_offset'],
    }),
    deoptMethodHandle: types.optional(NMETHOD, ['_deopt_mh_handler_begin', '_deopt_mh_handler_offset']) ?? 0,
    origPc: types.field(NMETHOD, ['_orig_pc_offset']),
  });
}

/** BPF reads the head of a blob as a whole, and its members where they are aligned. */
function inHead(blob: BlobLayout): BlobLayout {
  const { name, size, frameSize, frameComplete, codeBegin, compileId, deopt, deoptMethodHandle, origPc } =
    blob;
  const aligned: readonly (readonly [number, number])[] = [
    [name, 8],
    [size, 4],
    [frameSize, 4],
    [frameComplete.at, frameComplete.isShort ? 2 : 4],
    [codeBegin.at, codeBegin.isOffset ? 4 : 8],
    [compileId, 4],
    [deopt.at, deopt.isOffset ? 4 : 8],
    [deoptMethodHandle, deopt.isOffset ? 4 : 8],
    [origPc, 4],
  ];
  for (const [at, bytes] of aligned)
    if (at % bytes !== 0 || at + bytes > EF_HOTSPOT_BLOB_BYTES)
      throw new UnsupportedRuntime(`HotSpot has ${bytes} bytes that unwinding needs at ${at} of an nmethod`);
  return blob;
}

function scopesLayout(types: Types): ScopesLayout {
  const immutable = types.optional(['nmethod'], ['_immutable_data']);
  const mutable = types.optional(['CodeBlob'], ['_mutable_data']);
  const pcs = types.field(['nmethod'], ['_scopes_pcs_offset']);
  const data = types.place(NMETHOD, { address: ['_scopes_data_begin'], offset: ['_scopes_data_offset'] });
  return {
    pcs,
    pcsEnd: immutable === undefined ? types.field(['nmethod'], ['_dependencies_offset']) : data.at,
    data,
    container: immutable ?? -1,
    mutable:
      mutable === undefined
        ? undefined
        : { at: mutable, relocationSize: types.field(['CodeBlob'], ['_relocation_size']) },
    metadata: mutable === undefined ? metadataLayout(types, immutable !== undefined) : undefined,
  };
}

const metadataLayout = (types: Types, isFromData: boolean): { at: number; fromData: number } => ({
  at: types.field(['nmethod'], ['_metadata_offset']),
  fromData: isFromData ? types.field(['CodeBlob'], ['_data_offset']) : -1,
});

function methodLayout(types: Types): MethodLayout {
  const inPool = types.optional(['ConstantPool'], ['_source_file_name_index']);
  return {
    constMethod: types.field(['Method'], ['_constMethod']),
    constants: types.field(['ConstMethod'], ['_constants']),
    constBytes: types.size('ConstMethod'),
    codeSize: types.field(['ConstMethod'], ['_code_size']),
    flags: types.field(['ConstMethod'], ['_flags', '_flags._flags']),
    nameIndex: types.field(['ConstMethod'], ['_name_index']),
    poolBytes: types.size('ConstantPool'),
    poolHolder: types.field(['ConstantPool'], ['_pool_holder']),
    sourceFile: {
      at: inPool ?? types.field(['InstanceKlass'], ['_source_file_name_index']),
      isInClass: inPool === undefined,
    },
    className: types.field(['Klass'], ['_name']),
    symbolLength: symbolLength(types),
    symbolShift: symbolLength(types) === 0 ? 32 : 16,
    symbolBody: types.field(['Symbol'], ['_body', '_body[0]']),
  };
}

/** JDK 12 to 16: the upper half of a word. */
function symbolLength(types: Types): number {
  const alone = types.optional(['Symbol'], ['_length']);
  return alone ?? types.field(['Symbol'], ['_length_and_refcount']) + 2;
}

function heapsLayout(types: Types): HeapsLayout {
  const list = types.variable('CodeCache._heaps');
  const variable = list ?? types.variable('CodeCache._heap');
  if (variable === undefined) throw missing('CodeCache::_heaps');
  return {
    variable,
    isList: list !== undefined,
    listLength: list === undefined ? 0 : types.field(['GrowableArrayBase', 'GenericGrowableArray'], ['_len']),
    listData: list === undefined ? 0 : types.field(['GrowableArray<int>'], ['_data']),
    memory: types.field(['CodeHeap'], ['_memory']),
    segments: types.field(['CodeHeap'], ['_segmap']),
    log2SegmentSize: types.field(['CodeHeap'], ['_log2_segment_size']),
    low: types.field(['VirtualSpace'], ['_low_boundary']),
    high: types.field(['VirtualSpace'], ['_high_boundary']),
    blockHeader: types.size('HeapBlock'),
  };
}

const missing = (what: string): UnsupportedRuntime =>
  new UnsupportedRuntime(`HotSpot does not say where it has ${what}`);

/** Of types whose size is not told: larger than any. */
const MAX_OFFSET = 4096;

class Types {
  readonly #tables: VmTables;

  constructor(tables: VmTables) {
    this.#tables = tables;
  }

  /** Offset of a field by the first of its names, and of its types' names, that is known. */
  optional(types: readonly string[], names: readonly string[]): number | undefined {
    for (const type of types)
      for (const name of names) {
        const field = this.#tables.fields.get(`${type}.${name}`);
        if (field?.address !== 0) continue;
        // at the end of its type: what comes behind it, such as a symbol's text
        if (field.offset > (this.#tables.sizes.get(type) ?? MAX_OFFSET))
          throw new UnsupportedRuntime(`HotSpot has ${type}::${name} at ${field.offset}, outside of it`);
        return field.offset;
      }
    return undefined;
  }

  field(types: readonly string[], names: readonly string[]): number {
    const offset = this.optional(types, names);
    if (offset === undefined) throw missing(`${types[0]}::${names[0]}`);
    return offset;
  }

  place(types: readonly string[], names: { address: string[]; offset: string[] }): Place {
    const address = this.optional(types, names.address);
    return address === undefined
      ? { at: this.field(types, names.offset), isOffset: true }
      : { at: address, isOffset: false };
  }

  variable(name: string): number | undefined {
    return this.#tables.fields.get(name)?.address;
  }

  /** Of a field that is known. */
  typeOf(name: string): string {
    return this.#tables.fields.get(name)?.type ?? '';
  }

  size(type: string): number {
    const size = this.#tables.sizes.get(type);
    if (!size) throw new UnsupportedRuntime(`HotSpot does not say how large a ${type} is`);
    return size;
  }
}
