/**
 * HotSpot's own description of its types, out of the memory of a process: which fields a type has, at which offsets, and
 * how large it is. The layout of an entry is described, too, by variables of their own.
 */
import { UnsupportedRuntime } from '../contract.ts';
import type { RuntimeMemory } from '../runtime-memory.ts';
import type { TableSymbols } from './detect-hotspot.ts';

export interface VmField {
  /** In an object of the type; 0 where the field is static. */
  offset: number;
  /** Of a static field in the process, 0 otherwise. */
  address: number;
  /** As C++ spells it: `int16_t`. */
  type: string;
}

export interface VmTables {
  /** By `Type.field`. */
  fields: ReadonlyMap<string, VmField>;
  /** Bytes, by type. */
  sizes: ReadonlyMap<string, number>;
}

/** Real ones have some 800 and 48 bytes. */
const MAX_ENTRIES = 8192;
const MAX_STRIDE = 256;
const MAX_NAME_BYTES = 128;
const MAX_TYPE_BYTES = 64 << 10;

/** Of `wanted` types; undefined where the tables are still empty. Throws {@link UnsupportedRuntime}, CannotRead. */
export function readVmTables(
  memory: RuntimeMemory,
  symbols: TableSymbols,
  { base, wanted }: { base: number; wanted: ReadonlySet<string> },
): VmTables | undefined {
  const number = (key: keyof TableSymbols): number => memory.word(base + symbols[key]);
  const [structs, types] = [number('structs'), number('types')];
  const [structStride, typesStride] = [number('structStride'), number('typeStride')];
  // initializers have not run yet
  if (structs === 0 || types === 0 || structStride === 0 || typesStride === 0) return undefined;
  const stride = checkedStride(structStride);
  const typeStride = checkedStride(typesStride);
  const within = (key: keyof TableSymbols, size: number): number => checkedOffset(number(key), size);
  const at = {
    typeName: within('structTypeName', stride),
    fieldName: within('structFieldName', stride),
    typeString: within('structTypeString', stride),
    offset: within('structOffset', stride),
    address: within('structAddress', stride),
  };
  const literals = new Literals(memory);
  const fields = new Map<string, VmField>();
  for (const entry of entriesOf(memory, structs, stride, at.typeName)) {
    const typeName = literals.at(memory.word(entry + at.typeName));
    if (!wanted.has(typeName)) continue;
    const typeString = memory.word(entry + at.typeString);
    fields.set(`${typeName}.${literals.at(memory.word(entry + at.fieldName))}`, {
      offset: memory.word(entry + at.offset),
      address: memory.word(entry + at.address),
      type: typeString === 0 ? '' : literals.at(typeString),
    });
  }
  const typeAt = { name: within('typeName', typeStride), size: within('typeSize', typeStride) };
  const sizes = new Map<string, number>();
  for (const entry of entriesOf(memory, types, typeStride, typeAt.name)) {
    const name = literals.at(memory.word(entry + typeAt.name));
    if (wanted.has(name)) sizes.set(name, checkedSize(name, memory.word(entry + typeAt.size)));
  }
  return fields.size === 0 || sizes.size === 0 ? undefined : { fields, sizes };
}

/** Addresses of a table's entries; it ends at the first without a name. */
function* entriesOf(memory: RuntimeMemory, table: number, stride: number, nameAt: number): Generator<number> {
  for (let i = 0; i < MAX_ENTRIES; i++) {
    const entry = table + i * stride;
    if (memory.word(entry + nameAt) === 0) return;
    yield entry;
  }
  throw new UnsupportedRuntime(`a table of HotSpot's types has more than ${MAX_ENTRIES} entries`);
}

function checkedStride(stride: number): number {
  if (stride < 16 || stride > MAX_STRIDE || stride % 8 !== 0)
    throw new UnsupportedRuntime(`entries of HotSpot's tables of types have ${stride} bytes`);
  return stride;
}

function checkedOffset(offset: number, stride: number): number {
  if (offset > stride - 8 || offset % 8 !== 0)
    throw new UnsupportedRuntime(`a member of an entry of HotSpot's tables lies at ${offset} of ${stride}`);
  return offset;
}

function checkedSize(name: string, size: number): number {
  if (size > MAX_TYPE_BYTES) throw new UnsupportedRuntime(`HotSpot says that ${name} has ${size} bytes`);
  return size;
}

/** The same few literals again and again. */
class Literals {
  readonly #memory: RuntimeMemory;
  readonly #known = new Map<number, string>();

  constructor(memory: RuntimeMemory) {
    this.#memory = memory;
  }

  at(address: number): string {
    let text = this.#known.get(address);
    if (text === undefined) {
      text = this.#memory.text(address, MAX_NAME_BYTES);
      this.#known.set(address, text);
    }
    return text;
  }
}
