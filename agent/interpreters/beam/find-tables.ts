/** The tables of a live BEAM, found in its variables by what they look like: builds hide where they are. */
import { UnsupportedRuntime } from '../contract.ts';
import { CannotRead, type RuntimeMemory, wordAt } from '../runtime-memory.ts';
import type { BeamFile } from './detect-beam.ts';
import { ATOMS, type BeamLayout, layoutOf, MODULE, RANGE_BYTES, RANGES } from './layout.ts';
import { type CodePlace, findActiveIndex, findSwitch, NO_CODE, readSharedCode } from './shared-code.ts';
import { readAtom } from './terms.ts';

/** Addresses. */
export interface BeamTables {
  /** The three tables of modules. */
  ranges: number;
  /** The number of the one that is in use, 0: it was not found. */
  active: number;
  /** IndexTable of atoms. */
  atoms: number;
  /** Code that goes from one process to the next; empty: it is not known. */
  switching: CodePlace;
}

const CHUNK_BYTES = 1 << 16;
const MAX_MODULES = 100_000;
const MAX_FUNCTIONS = 1 << 20;
/** Places that look like a table: whoever has more has made them up, and each costs the agent some reading. */
const MAX_CANDIDATES = 16;

/** Throws {@link UnsupportedRuntime}, and CannotRead where the process has no such memory. */
export function findTables(memory: RuntimeMemory, base: number, file: BeamFile): BeamTables {
  const layout = layoutOf(file.release, file.machine);
  const words = readVariables(memory, base + file.data.start, file.data.bytes);
  const ranges = findRanges(memory, words, layout);
  const atoms = findAtoms(memory, words, base + file.atomTableName, layout);
  if (ranges === undefined || atoms === undefined)
    throw new UnsupportedRuntime(`its table of ${ranges === undefined ? 'modules' : 'atoms'} was not found`);
  return { ranges, atoms, ...findInSharedCode(memory, base, file, { ranges, resumed: layout.resumed }) };
}

/** What builds that hide the number say nowhere else; on arm64 also where processes are changed. */
function findInSharedCode(
  memory: RuntimeMemory,
  base: number,
  { activeIndex, machine, data }: BeamFile,
  { ranges, resumed }: { ranges: number; resumed: number },
): Pick<BeamTables, 'active' | 'switching'> {
  const told = { active: base + activeIndex, switching: NO_CODE };
  if (activeIndex !== 0 && machine === 'x86_64') return told;
  const shared = readSharedCode(memory, ranges);
  const start = base + data.start;
  const active = findActiveIndex(shared, machine, { start, end: start + data.bytes });
  return {
    active: activeIndex === 0 ? active : told.active,
    switching: machine === 'x86_64' ? NO_CODE : findSwitch(shared, resumed),
  };
}

interface Variables {
  start: number;
  words: Float64Array;
}

function readVariables(memory: RuntimeMemory, address: number, length: number): Variables {
  const start = Math.ceil(address / 8) * 8;
  const words = new Float64Array(Math.floor((address + length - start) / 8));
  for (let at = 0; at < words.length * 8; at += CHUNK_BYTES) {
    const view = memory.view(start + at, Math.min(CHUNK_BYTES, words.length * 8 - at));
    for (let i = 0; i < view.byteLength; i += 8) words[(at + i) / 8] = wordAt(view, i);
  }
  return { start, words };
}

function findRanges(
  memory: RuntimeMemory,
  { start, words }: Variables,
  layout: BeamLayout,
): number | undefined {
  const size = RANGES.bytes / 8;
  let left = MAX_CANDIDATES;
  for (let i = 0; i + RANGES.tables * size <= words.length && left > 0; i++) {
    if (![0, 1, 2].every((table) => isRanges(words, i + table * size))) continue;
    if (leadsToModule(memory, words[i]!, layout)) return start + i * 8;
    left--;
  }
  return undefined;
}

function isRanges(words: Float64Array, at: number): boolean {
  const [modules, count, allocated, middle] = [words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!];
  if (!(count > 0 && count <= allocated && allocated <= MAX_MODULES && modules > 0)) return false;
  const distance = middle - modules;
  return distance >= 0 && distance <= count * RANGE_BYTES && distance % RANGE_BYTES === 0;
}

function leadsToModule(memory: RuntimeMemory, modules: number, layout: BeamLayout): boolean {
  try {
    const range = memory.view(modules, RANGE_BYTES);
    const [start, end] = [wordAt(range, 0), wordAt(range, 8)];
    const count = memory.word(start + MODULE.functionCount);
    const [first, last] = [0, count].map((i) => memory.word(start + layout.functions + i * 8));
    return count > 0 && count < MAX_FUNCTIONS && first! > start && last! > first! && last! <= end;
  } catch (error) {
    if (error instanceof CannotRead) return false;
    throw error;
  }
}

function findAtoms(
  memory: RuntimeMemory,
  { start, words }: Variables,
  name: number,
  layout: BeamLayout,
): number | undefined {
  let left = MAX_CANDIDATES;
  for (let i = words.indexOf(name); i >= 0 && left > 0; i = words.indexOf(name, i + 1), left--) {
    const table = start + i * 8 - ATOMS.name;
    try {
      readAtom(memory, { atoms: table, layout }, 0);
      return table;
    } catch (error) {
      if (!(error instanceof CannotRead)) throw error;
    }
  }
  return undefined;
}
