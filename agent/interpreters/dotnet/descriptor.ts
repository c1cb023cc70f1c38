/**
 * What .NET 9 and later say of themselves to debuggers ("contract descriptor"): a header that leads to a text in JSON with
 * types, their fields' offsets, and numbers; and to addresses that the text refers to by index. Source: dotnet/runtime,
 * docs/design/datacontracts/contract-descriptor.md. The process may have written anything there.
 */
import type { RuntimeMemory } from '../runtime-memory.ts';

export interface Descriptor {
  /** Offset of a field, undefined where it is not told. */
  field(type: string, name: string): number | undefined;
  /** A number. */
  global(name: string): number | undefined;
  /** An address. */
  pointer(name: string): number | undefined;
  contract(name: string): number;
}

const MAGIC_LOW = 0x43434e44;
const MAGIC_HIGH = 0x00434144;
const HEADER_BYTES = 40;
const MAX_TEXT = 64 << 10;
const MAX_POINTERS = 256;
const MAX_OFFSET = 1 << 16;

type Table = Record<string, unknown>;

/** Undefined where there is none, or it makes no sense. Throws CannotRead. */
export function readDescriptor(memory: RuntimeMemory, address: number): Descriptor | undefined {
  const header = memory.view(address, HEADER_BYTES);
  if (header.getUint32(0, true) !== MAGIC_LOW || header.getUint32(4, true) !== MAGIC_HIGH) return undefined;
  const size = header.getUint32(12, true);
  const count = header.getUint32(24, true);
  if (size === 0 || size > MAX_TEXT || count > MAX_POINTERS) return undefined;
  const text = header.getUint32(20, true) * 2 ** 32 + header.getUint32(16, true);
  const pointers = header.getUint32(36, true) * 2 ** 32 + header.getUint32(32, true);
  const parsed = parse(memory.bytes(text, size));
  return parsed && new ReadDescriptor(memory, parsed, { address: pointers, count });
}

function parse(bytes: Uint8Array): Table | undefined {
  try {
    return tableOf(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const tableOf = (value: unknown): Table | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Table) : undefined;

const isOffset = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < MAX_OFFSET;

class ReadDescriptor implements Descriptor {
  readonly #memory: RuntimeMemory;
  readonly #text: Table;
  readonly #pointers: { address: number; count: number };

  constructor(memory: RuntimeMemory, text: Table, pointers: { address: number; count: number }) {
    this.#memory = memory;
    this.#text = text;
    this.#pointers = pointers;
  }

  field(type: string, name: string): number | undefined {
    const fields = tableOf(tableOf(this.#text['types'])?.[type]);
    const value = fields?.[name];
    const offset = Array.isArray(value) ? value[0] : value;
    return isOffset(offset) ? offset : undefined;
  }

  global(name: string): number | undefined {
    const value = tableOf(this.#text['globals'])?.[name];
    const number = Number(Array.isArray(value) && typeof value[0] === 'string' ? value[0] : value);
    return Number.isInteger(number) ? number : undefined;
  }

  pointer(name: string): number | undefined {
    const value = tableOf(this.#text['globals'])?.[name];
    const inner: unknown = Array.isArray(value) ? value[0] : undefined;
    const index: unknown = Array.isArray(inner) ? inner[0] : undefined;
    if (!isOffset(index) || index >= this.#pointers.count) return undefined;
    return this.#memory.word(this.#pointers.address + index * 8);
  }

  contract(name: string): number {
    const value = tableOf(this.#text['contracts'])?.[name];
    return typeof value === 'number' ? value : 0;
  }
}
