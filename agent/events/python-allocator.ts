/**
 * CPython's own allocator of objects, and whether probes at its functions see all that it does.
 *
 * CPython calls an allocator by pointers (PyMemAllocatorEx: a context, malloc, calloc, realloc, free), which PYTHONMALLOC or
 * tracemalloc replace. What its own functions are, which have no exported names, stands in a table that every build has in its
 * data: what lies below the debug hooks, in three parts of 48 bytes, each with the letter of its domain, r, m or o, in front
 * (_PyMem_Debug in Objects/obmalloc.c of v3.6.0 to v3.11.7, in Include/internal/pycore_runtime_init.h since v3.12.0).
 *
 * A function that is called by a pointer alone is nowhere else, whatever the linker optimises. But a compiler that has a profile
 * turns such a call into `pointer == _PyObject_Malloc ? <its body> : pointer()`, and with LTO it does so wherever CPython makes
 * an object: what is compared with the addresses says that no probe sees them all.
 */
import { bytesAt, codeSegmentAt } from '../../common/elf/bytes-at.ts';
import { type ElfFile, PF_W, PF_X, PT_LOAD } from '../../common/elf/elf.ts';
import { findFunctionParts } from '../../common/elf/function-parts.ts';
import { readFunctions } from '../../common/elf/function-ranges.ts';
import { findNamedSymbols } from '../../common/symbols/named-symbols.ts';
import { forEachEntry, readU64 } from '../../common/symbols/section-entries.ts';
import { type Comparison, findComparisons } from './code-comparisons.ts';

/** What is probed as, in the order of the table. */
const FUNCTIONS = ['cpython malloc', 'cpython calloc', 'cpython realloc', 'cpython free'] as const;

/** Which name an allocator's function is probed by (allocators.ts), by its ELF virtual address. */
type PythonFunctions = ReadonlyMap<number, string>;
/** Why its functions can't be probed: compiled into others, also of one without the interpreter lock, or not found. */
export type HiddenPython = 'inlined' | 'inlined, free-threaded' | 'unknown';

/** Undefined: the file is no CPython, or its objects are malloc()'s. Throws ElfError or OutOfBounds. */
export function findPythonAllocator(elf: ElfFile): PythonFunctions | HiddenPython | undefined {
  const callers = findNamedSymbols(elf, 'PyObject_Malloc', CALLERS_NAMES);
  if (!callers.has('PyObject_Malloc') || !callers.has('PyMem_Malloc')) return undefined;
  const table = findTable(elf);
  if (!table || codeBytesOf(elf) > MAX_CODE_BYTES) return 'unknown';
  if (table.objects[0] === table.raw[0]) return undefined;
  const functions = new Map<number, string>();
  for (const domain of [table.memory, table.objects])
    for (const [i, address] of domain.entries()) functions.set(address, FUNCTIONS[i]!);
  const comparisons = findComparisons(elf, new Set(functions.keys()));
  const ofFile = readFunctions(elf);
  const ofCallers = [...callers.values()].flatMap(({ address, size }) =>
    findFunctionParts(elf, { start: address, end: address + size }, ofFile),
  );
  const elsewhere = comparisons.filter(
    ({ at }) => !ofCallers.some(({ start, end }) => at >= start && at < end),
  );
  // with the interpreter lock memory and objects have one allocator
  const isFreeThreaded = table.memory[0] !== table.objects[0];
  if (areInlined(elsewhere, functions)) return isFreeThreaded ? 'inlined, free-threaded' : 'inlined';
  // with a profile and without LTO they may be compiled into these alone, whose callers are in other files
  if (elsewhere.length < comparisons.length)
    for (const [name, { address }] of callers) functions.set(address, CALLERS[name]);
  return functions;
}

/** Of all segments together, which may overlap in a file of a stranger: it takes a second. */
const MAX_CODE_BYTES = 512 << 20;

const codeBytesOf = ({ segments }: ElfFile): number =>
  segments
    .filter(({ type, flags }) => type === PT_LOAD && flags & PF_X)
    .reduce((sum, { filesz }) => sum + filesz, 0);

/** Called by all of CPython and its modules, with the arguments that C's functions have. */
const CALLERS = {
  PyObject_Malloc: 'malloc',
  PyObject_Calloc: 'calloc',
  PyObject_Realloc: 'realloc',
  PyObject_Free: 'free',
  PyMem_Malloc: 'malloc',
  PyMem_Calloc: 'calloc',
  PyMem_Realloc: 'realloc',
  PyMem_Free: 'free',
} as const;
const CALLERS_NAMES = Object.keys(CALLERS) as (keyof typeof CALLERS)[];

/** CPython itself asks so whether its allocator is in use: twice in a function of its statistics. */
const MAX_QUESTIONS = 8;

function areInlined(comparisons: readonly Comparison[], functions: PythonFunctions): boolean {
  const questions = comparisons.filter(({ to }) => functions.get(to) === FUNCTIONS[0]);
  return questions.length < comparisons.length || questions.length > MAX_QUESTIONS;
}

const DOMAIN_BYTES = 48;
const TABLE_BYTES = 3 * DOMAIN_BYTES;
const WORD_BYTES = 8;
/** Of all segments together, and of places that look like the table's beginning. */
const MAX_DATA_BYTES = 256 << 20;
const MAX_TRIED = 4096;
const letter = (text: string): Buffer => Buffer.from(text.padEnd(WORD_BYTES, '\0'));
const [RAW, MEMORY, OBJECTS] = [letter('r'), letter('m'), letter('o')];

interface Table {
  /** Addresses of malloc, calloc, realloc and free. */
  raw: number[];
  memory: number[];
  objects: number[];
}

function findTable(elf: ElfFile): Table | undefined {
  let [bytesLeft, triesLeft] = [MAX_DATA_BYTES, MAX_TRIED];
  for (const { type, flags, offset, vaddr, filesz } of elf.segments) {
    if (type !== PT_LOAD || !(flags & PF_W) || filesz > bytesLeft) continue;
    bytesLeft -= filesz;
    const bytes = elf.source.read(offset, filesz);
    const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = data.indexOf(RAW); at >= 0 && triesLeft-- > 0; at = data.indexOf(RAW, at + 1))
      if (isTable(data.subarray(at, at + TABLE_BYTES))) return readTable(elf, vaddr + at);
  }
  return undefined;
}

const isTable = (bytes: Buffer): boolean =>
  bytes.length === TABLE_BYTES &&
  MEMORY.equals(bytes.subarray(DOMAIN_BYTES, DOMAIN_BYTES + WORD_BYTES)) &&
  OBJECTS.equals(bytes.subarray(2 * DOMAIN_BYTES, 2 * DOMAIN_BYTES + WORD_BYTES));

/** Undefined where it does not hold functions. */
function readTable(elf: ElfFile, address: number): Table | undefined {
  const bytes = bytesAt(elf, address, TABLE_BYTES)!;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const relocated = relocatedWords(elf, address, TABLE_BYTES);
  const wordAt = (at: number): number => relocated.get(address + at) ?? readU64(view, at);
  // behind the letter and the context
  const [raw, memory, objects] = [0, 1, 2].map((domain) =>
    FUNCTIONS.map((_, i) => wordAt(domain * DOMAIN_BYTES + (2 + i) * WORD_BYTES)),
  ) as [number[], number[], number[]];
  const isCode = [...raw, ...memory, ...objects].every((one) => codeSegmentAt(elf, one) !== undefined);
  return isCode ? { raw, memory, objects } : undefined;
}

const SHT_RELA = 4;
const RELA_BYTES = 24;
const MAX_RELOCATIONS = 1 << 22;
/** Those that add where the file is loaded, of amd64 and of arm64: the psABIs, "Relocation Types". */
const RELATIVE_TYPES = new Set([8, 1027]);

/** Pointers that stand in the table of relocations, with zeros at their place; others stand at their place. */
function relocatedWords(elf: ElfFile, address: number, length: number): Map<number, number> {
  const words = new Map<number, number>();
  for (const section of elf.sections) {
    if (section.type !== SHT_RELA || section.name !== '.rela.dyn') continue;
    forEachEntry(elf, section, { entryBytes: RELA_BYTES, limit: MAX_RELOCATIONS }, (view, at) => {
      const place = readU64(view, at);
      if (place >= address && place < address + length && RELATIVE_TYPES.has(view.getUint32(at + 8, true)))
        words.set(place, readU64(view, at + 16));
    });
  }
  return words;
}
