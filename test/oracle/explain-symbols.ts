/** Compares names and lines with an oracle's, and says of each difference why it is one. */
import { spawnSync } from 'node:child_process';
import { compareSymbols, type Difference, ourLevels } from '../bench/compare-symbols.ts';
import { NmSymbols } from './nm-symbols.ts';
import type { OracleName } from './symbol-programs.ts';

export interface Row {
  addresses: number;
  same: number;
  /** Differences by their explanation. */
  explained: Map<string, number>;
  unexplained: string[];
}

/** Short names of the table's columns, and what the page says of them. */
export const EXPLANATIONS = {
  padding:
    'between functions: `nm -S` has no symbol there, we name nothing, the oracle names the function before it',
  plt: 'PLT stubs: we say `name@plt`, the oracle names a neighbour or nothing',
  borrowed: 'addr2line gives an inlined function without a mangled name the name of the symbol around it',
  plain:
    'addr2line gives the bare name of a local function (`_M_run`) of which we have the full one from the symbol table',
  alias: '`nm` has both names at that address: the linker or the compiler folded equal functions',
  'addr2line alone':
    "llvm-symbolizer says what we say; addr2line loses inlined calls of clang's DWARF 5 whose code is in several pieces, and now and then a file",
  'no line': 'instructions that belong to no line: Go says -1, we say the line before',
  'C in Go':
    "functions of C in a Go program: we have no line, since they have no debug information; Go's tool gives that of some Go function",
} as const;

const HEX = 16;

export async function compareProgram(
  oracle: OracleName,
  path: string,
  addresses: readonly number[],
): Promise<Row> {
  if (oracle === 'go tool addr2line') return await compareGo(path, addresses);
  const symbols = new NmSymbols(path);
  const { same, stubs, borrowed, differences, nameless } = await compareSymbols(oracle, path, addresses);
  const row: Row = { addresses: addresses.length, same, explained: new Map(), unexplained: [] };
  add(row, 'plt', stubs);
  add(row, 'borrowed', borrowed);
  for (const address of nameless) {
    if (symbols.namesAt(address).length === 0) add(row, 'padding', 1);
    else row.unexplained.push(`0x${address.toString(HEX)}: nameless here, ${symbols.namesAt(address)[0]}`);
  }
  const alone = oracle === 'addr2line' ? await confirmed(path, differences) : new Set<number>();
  for (const difference of differences) {
    const why =
      explain(difference, symbols) ?? (alone.has(difference.address) ? 'addr2line alone' : undefined);
    if (why) add(row, why, 1);
    else row.unexplained.push(describe(difference));
  }
  return row;
}

function add(row: Row, why: keyof typeof EXPLANATIONS, count: number): void {
  if (count > 0) row.explained.set(why, (row.explained.get(why) ?? 0) + count);
}

function explain(
  { kind, ours, theirs, address }: Difference,
  symbols: NmSymbols,
): keyof typeof EXPLANATIONS | undefined {
  if (kind !== 'name') return undefined;
  const [our, their] = [ours.at(-1)!, theirs.at(-1)!];
  const innerAgree = ours.slice(0, -1).every(({ line }, i) => line === theirs[i]!.line);
  if (!innerAgree || our.line !== their.line) return undefined;
  const names = symbols.namesAt(address);
  const has = (name: string): boolean => names.some((one) => one === name || one.startsWith(`${name}.`));
  if (has(our.name) && has(their.name)) return 'alias';
  const bare = their.name.replace(/<.*$/s, '');
  return has(our.name) && !their.name.startsWith('_Z') && our.plain?.includes(bare) ? 'plain' : undefined;
}

/** Where LLVM says the same as we do. */
async function confirmed(path: string, differences: readonly Difference[]): Promise<Set<number>> {
  const addresses = differences.map(({ address }) => address);
  if (addresses.length === 0) return new Set();
  const second = await compareSymbols('llvm-symbolizer', path, addresses);
  const others = new Set(second.differences.map(({ address }) => address));
  return new Set(addresses.filter((address) => !others.has(address)));
}

const describe = ({ address, kind, ours, theirs }: Difference): string => {
  const chain = (levels: Difference['ours']): string =>
    levels.map(({ name, file, line }) => `${name.slice(0, 80)} ${file}:${line}`).join(' < ');
  return `0x${address.toString(HEX)}, ${kind}: ${chain(ours)} ≠ ${chain(theirs)}`;
};

/** It shows the outermost function, and the line of the innermost. */
async function compareGo(path: string, addresses: readonly number[]): Promise<Row> {
  const input = addresses.map((address) => `0x${address.toString(HEX)}\n`).join('');
  const { stdout } = spawnSync('go', ['tool', 'addr2line', path], {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  const lines = stdout.split('\n');
  const row: Row = { addresses: addresses.length, same: 0, explained: new Map(), unexplained: [] };
  const ours = await ourLevels(path, addresses);
  for (const [i, address] of addresses.entries()) {
    const levels = ours[i]!;
    const our = `${levels.at(-1)?.name} ${levels[0]?.file}:${levels[0]?.line}`;
    const place = lines[2 * i + 1] ?? '';
    const their = `${lines[2 * i]} ${place.slice(place.lastIndexOf('/') + 1)}`;
    if (our === their) row.same++;
    else if (lines[2 * i] === '?' && levels.length === 0) row.same++;
    else if (/:-\d+$/.test(place)) add(row, 'no line', 1);
    else if (levels[0]?.name.endsWith('@plt')) add(row, 'plt', 1);
    else if (levels[0]?.line === 0 && our.split(' ')[0] === lines[2 * i]) add(row, 'C in Go', 1);
    else row.unexplained.push(`0x${address.toString(HEX)}: ${our} ≠ ${their}`);
  }
  return row;
}
