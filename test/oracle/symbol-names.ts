/** Demangled names against the tools of the languages, and names by address against `nm -S`. */
import { execFileSync } from 'node:child_process';
import { demangle } from '../../common/symbols/demangle/demangle.ts';
import { ourLevels } from '../bench/compare-symbols.ts';
import { NmSymbols } from './nm-symbols.ts';

export interface NameRow {
  names: number;
  differences: string[];
}

const MAX_NAMES = 200_000;

/** Every mangled name of a file, as `tool` has it. Only names that it demangles count. */
export function compareDemangled(tool: 'c++filt' | 'rustfilt', path: string, prefix: RegExp): NameRow {
  const symbols = execFileSync('sh', ['-c', 'nm "$1" 2>/dev/null; nm -D "$1" 2>/dev/null', 'sh', path], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  const found = symbols.split('\n').map((line) => line.slice(line.lastIndexOf(' ') + 1).replace(/@.*$/, ''));
  const names = [...new Set(found.filter((name) => prefix.test(name)))].slice(0, MAX_NAMES);
  const args = tool === 'c++filt' ? ['-i'] : [];
  const theirs = execFileSync(tool, args, {
    input: `${names.join('\n')}\n`,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  }).split('\n');
  const known = names
    .map((name, i) => ({ name, their: theirs[i]! }))
    .filter(({ name, their }) => name !== their);
  const differences = known
    .map(({ name, their }) => ({ name, their, our: demangle(name) }))
    .filter(({ their, our }) => normalise(our) !== normalise(their))
    .map(({ name, their, our }) => `${name}: ${our} ≠ ${their}`);
  return { names: known.length, differences };
}

/** c++filt writes `>>` after an empty pack and `> >` elsewhere; rustfilt keeps a hash that says nothing. */
const normalise = (name: string): string =>
  name
    .replaceAll('>>', '> >')
    .replaceAll('>>', '> >')
    .replace(/::h[0-9a-f]{16}$/, '');

/** The first and the last byte of every function that `nm -S` lists: is the outermost name one of those there? */
export async function compareNm(path: string): Promise<NameRow> {
  const symbols = new NmSymbols(path);
  const functions = symbols.all.filter(({ size }) => size > 0);
  const addresses = functions.flatMap(({ start, size }) => [start, start + size - 1]);
  const ours = await ourLevels(path, addresses);
  const differences = addresses.flatMap((address, i) => {
    const name = ours[i]!.at(-1)?.name ?? '';
    const names = symbols.namesAt(address);
    // DWARF names the function, the symbol names the copy that the compiler made of it
    const isOne = names.some((one) => one === name || one.startsWith(`${name}.`));
    const isSame = isOne || names.some((one) => demangle(one) === demangle(name));
    return isSame ? [] : [`0x${address.toString(16)}: ${name} ≠ ${names.slice(0, 3).join(' or ')}`];
  });
  return { names: addresses.length, differences };
}
