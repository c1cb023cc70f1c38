/** Asks this project and binutils or LLVM about the same addresses of a file, and counts where they differ. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { placeOf } from '../../agent/files/debug-files.ts';
import { fdSource } from '../../agent/files/fd-source.ts';
import { openSymbols } from '../../agent/symbolizer/worker/open-symbols.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { readCodeRanges } from '../../common/symbols/code-ranges.ts';
import { demangle } from '../../common/symbols/demangle/demangle.ts';

/** One level of an inline chain. */
export interface Level {
  /** The linker's name. */
  name: string;
  /** The compiler's, for C: `main` where the linker has `main.cold`. */
  plain?: string;
  /** Last part of the path. */
  file: string;
  line: number;
}

export type Oracle = 'addr2line' | 'llvm-symbolizer';

export interface Comparison {
  addresses: number;
  /** Name, file and line are the same at every level. */
  same: number;
  /** Ours is a PLT stub, for which the oracles have no name or a neighbour's. */
  stubs: number;
  /** addr2line gives an inlined function without a mangled name the name of the symbol around it. */
  borrowed: number;
  /** The oracle has no name for the address, or we have none: it lies between functions. */
  onlyWe: number;
  onlyOracle: number;
  /** The addresses of `onlyOracle`. */
  nameless: number[];
  differences: Difference[];
}

export interface Difference {
  address: number;
  kind: 'levels' | 'name' | 'file' | 'line';
  ours: Level[];
  theirs: Level[];
}

const MAX_OUTPUT = 512 << 20;

/** `count` addresses, evenly spread over the code of a file. */
export function sampleAddresses(path: string, count: number): number[] {
  const fd = openSync(path, 'r');
  try {
    const ranges = readCodeRanges(parseElf(fdSource(fd)));
    const total = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
    const step = Math.max(1, total / count);
    const addresses: number[] = [];
    let skipped = 0;
    for (const { start, end } of ranges) {
      for (let at = skipped; at < end - start; at += step) addresses.push(start + Math.floor(at));
      skipped = (step - ((end - start - skipped) % step)) % step;
    }
    return addresses;
  } finally {
    closeSync(fd);
  }
}

export async function ourLevels(path: string, addresses: readonly number[]): Promise<Level[][]> {
  const fd = openSync(path, 'r');
  const symbols = await openSymbols(parseElf(fdSource(fd)), placeOf(path));
  try {
    return addresses.map((address) =>
      symbols.lookup(address).map((frame) => ({
        name: frame.systemName,
        plain: frame.function,
        file: baseName(frame.file),
        line: frame.line,
      })),
    );
  } finally {
    symbols.close();
    closeSync(fd);
  }
}

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** Raw names: neither tool demangles. */
export function theirLevels(oracle: Oracle, path: string, addresses: readonly number[]): Level[][] {
  const input = `${addresses.map((address) => `0x${address.toString(16)}`).join('\n')}\n`;
  const run = (command: string, args: string[]): string =>
    execFileSync(command, args, {
      input,
      encoding: 'utf8',
      maxBuffer: MAX_OUTPUT,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
  if (oracle === 'addr2line') return parseAddr2line(run('addr2line', ['-a', '-f', '-i', '-e', path]));
  return parseBlocks(
    run('llvm-symbolizer', ['--obj', path, '--inlines', '--no-demangle', '--functions=linkage']),
  );
}

/** Each answer starts with its address, a level has two lines: function and place. */
function parseAddr2line(text: string): Level[][] {
  const answers: Level[][] = [];
  const lines = text.split('\n');
  for (let i = 0; i < lines.length; i++) {
    if (/^0x[0-9a-f]{16}$/.test(lines[i]!)) answers.push([]);
    else if (lines[i]) pushLevel(answers.at(-1)!, lines[i]!, lines[++i] ?? '');
  }
  return answers;
}

/** An answer ends with an empty line. */
function parseBlocks(text: string): Level[][] {
  return text
    .trimEnd()
    .split('\n\n')
    .map((block) => {
      const levels: Level[] = [];
      const lines = block.split('\n');
      for (let i = 0; i + 1 < lines.length; i += 2) pushLevel(levels, lines[i]!, lines[i + 1]!);
      return levels;
    });
}

function pushLevel(levels: Level[], name: string, place: string): void {
  const match = /^(.*?):(\d+|\?)(:\d+)?( \(discriminator \d+\))?$/.exec(place);
  const file = match ? baseName(match[1]!) : '';
  if (name === '??') return;
  levels.push({ name, file: file === '??' ? '' : file, line: Number(match?.[2]) || 0 });
}

export async function compareSymbols(
  oracle: Oracle,
  path: string,
  addresses: readonly number[],
): Promise<Comparison> {
  const ours = await ourLevels(path, addresses);
  const theirs = theirLevels(oracle, path, addresses);
  if (theirs.length !== addresses.length)
    throw new Error(`${oracle} gave ${theirs.length} answers for ${addresses.length} addresses of ${path}`);
  const result: Comparison = {
    addresses: addresses.length,
    same: 0,
    stubs: 0,
    borrowed: 0,
    onlyWe: 0,
    onlyOracle: 0,
    nameless: [],
    differences: [],
  };
  for (const [i, address] of addresses.entries()) {
    const kind = differ(ours[i]!, theirs[i]!);
    if (kind === undefined) result.same++;
    else if (ours[i]![0]?.name.endsWith('@plt')) result.stubs++;
    else if (kind === 'name' && isBorrowed(ours[i]!, theirs[i]!)) result.borrowed++;
    else if (theirs[i]!.length === 0) result.onlyWe++;
    else if (ours[i]!.length === 0) {
      result.onlyOracle++;
      result.nameless.push(address);
    } else result.differences.push({ address, kind, ours: ours[i]!, theirs: theirs[i]! });
  }
  return result;
}

function isBorrowed(ours: Level[], theirs: Level[]): boolean {
  const [inner, outer] = [theirs[0]!, theirs.at(-1)!];
  const isPlain = ours[0]!.name === ours[0]!.plain;
  const corrected = [{ ...inner, name: ours[0]!.name }, ...theirs.slice(1)];
  const isOfOuter = withoutClone(inner.name) === withoutClone(outer.name);
  return ours.length > 1 && isPlain && isOfOuter && !differ(ours, corrected);
}

/** LLVM takes the outermost name from the symbol table, where compilers' copies of a function have a suffix. */
const withoutClone = (name: string): string =>
  name.replace(/(\.(isra|constprop|part|cold|lto_priv|llvm)(\.\d+)?)+$/, '');

/** The linker's names, or what a person reads: several symbols may be one function (C1 and C2 of a constructor). */
const isSameName = (our: Level, their: string): boolean =>
  withoutClone(our.name) === their || our.plain === their || our.plain === demangle(their);

function differ(ours: Level[], theirs: Level[]): Difference['kind'] | undefined {
  if (ours.length !== theirs.length) return 'levels';
  for (const [i, our] of ours.entries()) {
    const their = theirs[i]!;
    if (!isSameName(our, withoutClone(their.name))) return 'name';
    if (our.line !== their.line) return 'line';
    // without lines, oracles name the file of the nearest STT_FILE symbol
    if (our.line > 0 && our.file !== their.file) return 'file';
  }
  return undefined;
}
