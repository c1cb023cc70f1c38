/**
 * Names of code that a JIT has registered for debuggers: the symbol tables of its objects name it. LLVM's older engine
 * registers all that it compiles (numba), its newer ones where that is switched on (PostgreSQL: jit_debugging_support).
 */
import type { Pid } from '../../common/base/brand.ts';
import { bufferSource, OutOfBounds } from '../../common/base/byte-source.ts';
import { ElfError, type ElfFile, parseElf, SHT_SYMTAB } from '../../common/elf/elf.ts';
import { CodeMap } from '../../common/jit/code-map.ts';
import {
  type JitCode,
  type JitCodeStats,
  MAX_ADDRESS,
  MAX_NAME_BYTES,
  readName,
} from '../../common/jit/jit-code.ts';
import { forEachEntry, readStrings, readU64 } from '../../common/symbols/section-entries.ts';
import type { SymbolFrame } from '../../common/symbols/source.ts';
import { type ForeignFiles, memoryReader, type ReadAt } from '../processes/foreign-files.ts';
import type { Growth } from './followed-file.ts';
import { ET_REL, MAX_OBJECT_BYTES, type RegisteredObject, readObjectList } from './registered-objects.ts';

const MAX_OBJECTS_BYTES = 64 << 20;
const MAX_NAMES_BYTES = 8 << 20;
const STT_FUNC = 2;
const SYMBOL_BYTES = 24;

export class RegisteredNames {
  readonly code: JitCode;
  /** The list stays where it is. */
  readonly wasUnlinked = false;
  readonly #address: number;
  readonly #memory: ReadAt;
  readonly #stats: JitCodeStats;
  readonly #map: CodeMap;
  readonly #names: string[] = [];
  /** In the list when it was read last, by address and size: what leaves it may make room for another one. */
  #objects = new Set<string>();
  #namesLeft = MAX_NAMES_BYTES;
  #objectsLeft = MAX_OBJECTS_BYTES;

  /** `address`: of the descriptor. */
  constructor(
    { files, pid, address }: { files: ForeignFiles; pid: Pid; address: number },
    maxFunctions: number,
    stats: JitCodeStats,
  ) {
    this.#address = address;
    this.#memory = memoryReader(files, pid);
    this.#stats = stats;
    this.#map = new CodeMap(maxFunctions);
    const map = this.#map;
    const heldBytes = (): number => MAX_NAMES_BYTES - this.#namesLeft;
    this.code = {
      get byteLength() {
        return map.byteLength + heldBytes();
      },
      push: (_chunk, offset) => offset,
      find: (address) => map.find(address),
      describe: async (place) => this.#describe(place),
    };
  }

  async describe(place: number): Promise<SymbolFrame> {
    return this.#describe(place);
  }

  /** Reads the objects that have come since the last time. */
  async follow(): Promise<Growth> {
    const objects = await readObjectList(this.#address, this.#memory);
    if (!objects) return 'same';
    const before = this.#objects;
    this.#objects = new Set();
    let hasGrown = false;
    // the newest ones come first, and hold where two cover an address
    for (const object of objects.reverse()) hasGrown = (await this.#take(object, before)) || hasGrown;
    return hasGrown ? 'grown' : 'same';
  }

  forget(): void {}

  close(): void {}

  async #take({ object, size }: RegisteredObject, before: ReadonlySet<string>): Promise<boolean> {
    const key = `${object} ${size}`;
    // twice in a list that leads back into itself
    const isKnown = before.has(key) || this.#objects.has(key);
    this.#objects.add(key);
    if (isKnown) return false;
    if (size > MAX_OBJECT_BYTES || size > this.#objectsLeft) {
      this.#stats.dropped++;
      return false;
    }
    this.#objectsLeft -= size;
    const bytes = Buffer.alloc(size);
    const count = await this.#memory(object, bytes);
    try {
      for (const found of functionsOf(parseElf(bufferSource(bytes.subarray(0, count))))) this.#add(found);
      return true;
    } catch (error) {
      if (!(error instanceof ElfError || error instanceof OutOfBounds)) throw error;
      this.#stats.malformed++;
      return false;
    }
  }

  #add({ start, size, name }: JitFunction): void {
    const hasRoom = this.#namesLeft >= name.length && this.#map.add(start, size, this.#names.length);
    if (!hasRoom) {
      this.#stats.dropped++;
      return;
    }
    this.#namesLeft -= name.length;
    this.#names.push(name);
    this.#stats.functions++;
  }

  #describe(place: number): SymbolFrame {
    const name = this.#names[place] ?? '';
    return { function: name, systemName: '', file: '', line: 0, column: 0, inlined: false };
  }
}

interface JitFunction {
  start: number;
  size: number;
  name: string;
}

/** In an object file the JIT has put the address of each section where it lies. Throws ElfError or OutOfBounds. */
export function functionsOf(elf: ElfFile): JitFunction[] {
  const table = elf.sections.find(({ type }) => type === SHT_SYMTAB);
  if (!table) return [];
  const strings = readStrings(elf, table);
  const found: JitFunction[] = [];
  const limits = { entryBytes: SYMBOL_BYTES, limit: MAX_OBJECT_BYTES / SYMBOL_BYTES };
  forEachEntry(elf, table, limits, (view, at) => {
    const section = elf.sections[view.getUint16(at + 6, true)];
    if ((view.getUint8(at + 4) & 0xf) !== STT_FUNC || !section || section.type === 0) return;
    const start = readU64(view, at + 8) + (elf.type === ET_REL ? section.addr : 0);
    const size = readU64(view, at + 16);
    if (start === 0 || size === 0 || start + size > MAX_ADDRESS) return;
    const nameAt = view.getUint32(at, true);
    // not to its end: that may be the same megabyte for each of them
    const bytes = strings.subarray(nameAt, nameAt + MAX_NAME_BYTES);
    const end = bytes.indexOf(0);
    const name = readName(end < 0 ? bytes : bytes.subarray(0, end));
    if (name !== '') found.push({ start, size, name });
  });
  return found;
}
