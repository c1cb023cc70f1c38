/** What a module says of its code: which function an address is in, and on which line. */
import { lastAtOrBelow } from '../../../common/base/search.ts';
import { CannotRead, type RuntimeMemory, wordAt } from '../runtime-memory.ts';
import { FUNCTION, LINES, MODULE } from './layout.ts';
import { type AtomPlace, atomIndex, readAtom, readText } from './terms.ts';

/** A module, as far as it was read. */
export interface BeamModule {
  start: number;
  /** What its MD5 begins with. */
  cookie: number;
  /** Addresses of the ErtsCodeInfo of each function, in front of its code; then the end. */
  functions: Float64Array;
  /** From where on it has jumps to code that all modules share, up to its end. */
  jumps: number;
  /** Address of its BeamCodeLineTab; 0: it has none. */
  lines: number;
  names: Map<number, BeamFunction>;
  files: Map<number, string>;
}

export interface BeamFunction {
  module: string;
  name: string;
  arity: number;
  /** Of each place in it that has a line: address and place of that in the module's table. */
  addresses: Float64Array;
  firstLocation: number;
}

/** A place in a source text; line 0: it has none. */
export interface Location {
  file: string;
  line: number;
}

const MAX_FUNCTIONS = 1 << 17;
const MAX_LINES = 1 << 16;
const MAX_ARITY = 255;
const FILE_SHIFT = 2 ** 24;
const COOKIES = 2 ** 19;
const MAX_JUMPS = 1 << 12;
const JUMP_BYTES = 6;
/** jmp with four bytes that say how far, behind a prefix that fills it up. OTP 25 has none of them. */
const JUMP_CODE = 0x40e9;

/** What its MD5 begins with, as ebpf/beam/unwind.h has it. */
export function cookieOf(memory: RuntimeMemory, start: number, at: number): number {
  const md5 = memory.word(start + at);
  return md5 === 0 ? 0 : memory.u32(md5) % COOKIES;
}

/** Throws CannotRead. */
export function readModule(
  memory: RuntimeMemory,
  start: number,
  at: { functions: number; cookie: number },
): BeamModule {
  const count = memory.word(start + MODULE.functionCount);
  if (!(count > 0 && count <= MAX_FUNCTIONS)) throw new CannotRead('malformed');
  const functions = readWords(memory, start + at.functions, count + 1);
  return {
    start,
    cookie: at.cookie,
    functions,
    jumps: findJumps(memory, functions),
    lines: memory.word(start + MODULE.lines),
    names: new Map(),
    files: new Map(),
  };
}

function findJumps(memory: RuntimeMemory, functions: Float64Array): number {
  const end = functions.at(-1)!;
  const bytes = Math.min(Math.max(0, end - functions.at(-2)!), MAX_JUMPS * JUMP_BYTES);
  const code = Buffer.from(memory.whole(end - bytes, bytes) ?? []);
  let at = code.length - JUMP_BYTES;
  while (at >= 0 && code.readUInt16BE(at) === JUMP_CODE) at -= JUMP_BYTES;
  return end - code.length + at + JUMP_BYTES;
}

/** Number of the function that holds an address. Throws CannotRead. */
export function functionAt({ functions }: BeamModule, address: number): number {
  const i = lastAtOrBelow(functions, address);
  if (i < 0 || i >= functions.length - 1) throw new CannotRead('malformed');
  return i;
}

/** Throws CannotRead. */
export function readFunction(
  memory: RuntimeMemory,
  module: BeamModule,
  i: number,
  place: AtomPlace,
): BeamFunction {
  const info = memory.view(module.functions[i]!, FUNCTION.bytes);
  const atom = (at: number): string => atomOf(memory, place, wordAt(info, at));
  const arity = wordAt(info, FUNCTION.arity);
  if (arity > MAX_ARITY) throw new CannotRead('malformed');
  return {
    module: atom(FUNCTION.module),
    name: atom(FUNCTION.name),
    arity,
    ...linesOf(memory, module, i),
  };
}

function linesOf(
  memory: RuntimeMemory,
  { lines }: BeamModule,
  i: number,
): Pick<BeamFunction, 'addresses' | 'firstLocation'> {
  const none = { addresses: new Float64Array(0), firstLocation: 0 };
  if (lines === 0) return none;
  const bounds = memory.view(lines + LINES.functions + i * 8, 16);
  const [from, to, origin] = [wordAt(bounds, 0), wordAt(bounds, 8), memory.word(lines + LINES.functions)];
  const count = (to - from) / 8;
  const first = (from - origin) / 8;
  if (!(Number.isInteger(count) && count >= 0 && count <= MAX_LINES && first >= 0))
    throw new CannotRead('malformed');
  return count === 0 ? none : { addresses: readWords(memory, from, count), firstLocation: first };
}

/** Where the address is, and where its function begins. Throws CannotRead. */
export function locate(
  memory: RuntimeMemory,
  module: BeamModule,
  f: BeamFunction,
  address: number,
  place: AtomPlace,
): { at: Location; start: Location } {
  const none = { file: '', line: 0 };
  if (f.addresses.length === 0) return { at: none, start: none };
  const i = lastAtOrBelow(f.addresses, address);
  const read = (k: number): Location =>
    readLocation(memory, module, f.firstLocation + k, (number) =>
      readFile(memory, module.lines, number, { place, ownModule: f.module }),
    );
  const start = read(0);
  return { at: i < 0 ? start : read(i), start };
}

function readLocation(
  memory: RuntimeMemory,
  { lines, files }: BeamModule,
  index: number,
  fileOf: (number: number) => string,
): Location {
  const bytes = memory.u32(lines + LINES.locationBytes);
  if (bytes !== 2 && bytes !== 4) throw new CannotRead('malformed');
  const view = memory.view(memory.word(lines + LINES.locations) + index * bytes, bytes);
  const location = bytes === 2 ? view.getUint16(0, true) : view.getUint32(0, true);
  const line = location % FILE_SHIFT;
  if (line === 0) return { file: '', line: 0 };
  const number = Math.floor(location / FILE_SHIFT);
  let file = files.get(number);
  if (file === undefined) {
    file = fileOf(number);
    files.set(number, file);
  }
  return { file, line };
}

function readFile(
  memory: RuntimeMemory,
  lines: number,
  number: number,
  { place, ownModule }: { place: AtomPlace; ownModule: string },
): string {
  const term = (i: number): number => memory.word(memory.word(lines + LINES.files) + i * 8);
  if (!place.layout.hasFileAtoms) return readText(memory, term(number));
  return number === 0 ? `${ownModule}.erl` : atomOf(memory, place, term(number - 1));
}

/** Throws CannotRead. */
function atomOf(memory: RuntimeMemory, place: AtomPlace, term: number): string {
  const index = atomIndex(term);
  if (index === undefined) throw new CannotRead('malformed');
  return readAtom(memory, place, index);
}

function readWords(memory: RuntimeMemory, address: number, count: number): Float64Array {
  const words = new Float64Array(count);
  const view = memory.view(address, count * 8);
  for (let i = 0; i < count; i++) words[i] = wordAt(view, i * 8);
  return words;
}
