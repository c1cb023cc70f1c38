/**
 * Where in a file a probe goes: at functions by the names that people know them by, or at what the program's authors have
 * put there for it (SystemTap's notes). In a worker: whoever owns the file may have made it up.
 */
import { fstatSync } from 'node:fs';
import { excerpt } from '../../common/base/printable.ts';
import { ElfError, type ElfFile, parseElf } from '../../common/elf/elf.ts';
import { readGoVersion } from '../../common/elf/go-build-info.ts';
import { findGoPclntab } from '../../common/elf/go-pclntab.ts';
import { demangle } from '../../common/symbols/demangle/demangle.ts';
import { readMiniDebugInfo } from '../../common/symbols/mini-debug-info.ts';
import { findSeparateDebugInfo } from '../../common/symbols/separate-symbols.ts';
import { DebugFiles } from '../files/debug-files.ts';
import { fdSource } from '../files/fd-source.ts';
import { FilePool } from '../files/file-pool.ts';
import { ownRoot } from '../files/root-directory.ts';
import type { WorkHandler } from '../workers/protocol.ts';
import { GO_ALLOCATOR, isOperator, probesOfAllocator } from './allocators.ts';
import { argumentsOf, type Convention } from './event-field.ts';
import { forEachSymbol, ignoreDamage, offsetOfCode, STT_FUNC, textAt } from './file-symbols.ts';
import { findUsdt } from './find-usdt.ts';
import { answerOf, type ProbeAnswer, type ProbeRequest } from './probe-request.ts';
import { findPythonAllocator } from './python-allocator.ts';

const MAX_SIMILAR = 5;

export const createProbeHandler = (): WorkHandler<ProbeRequest, ProbeAnswer> => ({
  async handle({ fd, path, wanted }) {
    const elf = parseElf(fdSource(fd));
    if (wanted !== 'allocators' && 'provider' in wanted) return findUsdt(elf, wanted);
    const pool = new FilePool();
    const place = { path, root: ownRoot(), owner: fstatSync(fd, { bigint: true }) };
    try {
      const separate = findSeparateDebugInfo(elf, new DebugFiles(place, pool));
      const others = [separate?.elf, await miniDebugInfo(elf)].filter((one) => one !== undefined);
      return wanted === 'allocators' ? findAllocators(elf, others) : findFunctions(elf, others, wanted);
    } finally {
      pool.close();
    }
  },
});

async function miniDebugInfo(elf: ElfFile): Promise<ElfFile | undefined> {
  try {
    return await readMiniDebugInfo(elf);
  } catch (error) {
    if (error instanceof ElfError) return undefined;
    throw error;
  }
}

/** As it stands in the file, or as people write it: with its parameters or without. */
export function findFunctions(
  elf: ElfFile,
  others: readonly ElfFile[],
  { symbol, offset, isAtReturn }: { symbol: string; offset: number; isAtReturn: boolean },
): ProbeAnswer {
  const addresses = new Map<number, Convention>();
  const ofGo = conventionOfGo(elf);
  const similar = new Set<string>();
  const word = longestWord(symbol);
  const isWanted = (name: string): boolean =>
    name === symbol ||
    (name.includes(word) && (demangle(name) === symbol || demangle(name, 'short') === symbol));
  const lower = word.toLowerCase();
  let isMovedByGo = false;
  const visit = (name: string, address: number, isOfGo = false): void => {
    if (isWanted(name)) {
      // Go's are in the table of symbols as well
      if (isOfGo || !addresses.has(address)) addresses.set(address, isOfGo ? ofGo : 'c');
      isMovedByGo ||= isOfGo && isAtReturn;
    } else if (similar.size < MAX_SIMILAR && name.toLowerCase().includes(lower))
      similar.add(excerpt(demangle(name, 'short')));
  };
  for (const file of [elf, ...others]) forEachFunction(file, visit);
  if (isMovedByGo) return { found: [], leftOut: 0, similar: [], isMovedByGo };
  const found = [...addresses].flatMap(([address, convention]) => {
    const at = offsetOfCode(elf, address + offset);
    const words = argumentsOf(convention, elf.machine);
    return at === undefined ? [] : [{ offset: at, semaphore: 0, arguments: words }];
  });
  return answerOf(found, [...similar]);
}

/** One name for each place. */
export function findAllocators(elf: ElfFile, others: readonly ElfFile[]): ProbeAnswer {
  const names = new Map<number, string>();
  const isUsable = (name: string): boolean => name !== GO_ALLOCATOR || conventionOfGo(elf) === 'go';
  for (const file of [elf, ...others])
    forEachFunction(file, (name, address) => {
      if (probesOfAllocator(name).length > 0 && !names.has(address) && isUsable(name))
        names.set(address, name);
    });
  // of libstdc++ they call what is probed
  const ownsOperators = [...names.values()].some((name) => !isOperator(name));
  const ofPython = pythonAllocatorOf(elf);
  if (ofPython instanceof Map) for (const [address, name] of ofPython) names.set(address, name);
  const found = [...names].flatMap(([address, name]) => {
    if (isOperator(name) && !ownsOperators) return [];
    const offset = offsetOfCode(elf, address);
    return offset === undefined ? [] : [{ offset, semaphore: 0, name }];
  });
  const answer = answerOf(found, []);
  return typeof ofPython === 'string' ? { ...answer, hiddenPython: ofPython } : answer;
}

function pythonAllocatorOf(elf: ElfFile): ReturnType<typeof findPythonAllocator> {
  let found: ReturnType<typeof findPythonAllocator>;
  ignoreDamage(() => {
    found = findPythonAllocator(elf);
  });
  return found;
}

/** Go passes arguments in registers since 1.17, on arm64 since 1.18. */
function conventionOfGo(elf: ElfFile): Convention {
  const minor = Number(/^1\.(\d+)/.exec(readGoVersion(elf) ?? '')?.[1]);
  return minor < (elf.machine === 'x86_64' ? 17 : 18) ? 'go-on-stack' : 'go';
}

/** Of the name itself, which mangled names hold as it is. */
const longestWord = (symbol: string): string =>
  (symbol.replace(/[(<].*$/s, '') || symbol)
    .split(/\W+/)
    .reduce((longest, word) => (word.length > longest.length ? word : longest), '');

function forEachFunction(
  elf: ElfFile,
  visit: (name: string, address: number, isOfGo?: boolean) => void,
): void {
  forEachSymbol(elf, STT_FUNC, visit);
  ignoreDamage(() => {
    const table = findGoPclntab(elf);
    if (!table) return;
    const names = Buffer.from(table.names);
    for (const { start, nameAt } of table.functions()) visit(textAt(names, nameAt), start, true);
  });
}
