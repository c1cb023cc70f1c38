import type { Command } from 'commander';
import { placeOf } from '../agent/symbols/debug-files.ts';
import type { Debuginfod } from '../agent/symbols/debuginfod.ts';
import { openSymbols } from '../agent/symbols/open-symbols.ts';
import type { ElfFile } from '../common/elf/elf.ts';
import type { SymbolFrame } from '../common/symbols/source.ts';
import { parseAddress, withElf } from './open-elf.ts';

interface Options {
  json?: boolean;
  debuginfod?: boolean;
}

const MAX_FETCHES = 3;

export function registerShowSymbol(show: Command): void {
  show
    .command('symbol')
    .description('name addresses of an ELF file, with the functions that were inlined there')
    .argument('<ELF>', 'executable, shared library or its separate debug information')
    .argument('<ADDRESS...>', 'ELF virtual addresses (0x… or decimal)')
    .option('--json', 'one JSON object a line')
    .option('--debuginfod', 'fetch debug information that is missing here from DEBUGINFOD_URLS')
    .action((path: string, addresses: string[], options: Options) => showSymbol(path, addresses, options));
}

async function showSymbol(path: string, texts: string[], options: Options): Promise<void> {
  const addresses = texts.map((text) => parseAddress(text, 'ADDRESS'));
  const format = options.json ? formatJson : formatText;
  const debuginfod = options.debuginfod ? await openDebuginfod() : undefined;
  return withElf(path, async (elf) => {
    const chains = await lookUp(elf, path, addresses, debuginfod);
    for (const [i, address] of addresses.entries()) process.stdout.write(format(address, chains[i]!));
  });
}

/** Loaded where it is asked for: naming one address takes less time than reading what fetches files. */
async function openDebuginfod(): Promise<Debuginfod> {
  const { Debuginfod } = await import('../agent/symbols/debuginfod.ts');
  const { debuginfodFromEnvironment } = await import('../agent/symbols/debuginfod-settings.ts');
  return new Debuginfod(debuginfodFromEnvironment(process.env), remark);
}

const remark = (message: string): void => void process.stderr.write(`everyframe: ${message}\n`);

/** Once more with what was fetched, while something new is: a debug file may refer to a part it shares with others. */
async function lookUp(
  elf: ElfFile,
  path: string,
  addresses: readonly number[],
  debuginfod: Debuginfod | undefined,
): Promise<SymbolFrame[][]> {
  const fetched: Record<string, string> = {};
  for (let round = 0; ; round++) {
    const symbols = await openSymbols(elf, { ...placeOf(path), fetched });
    const chains = addresses.map((address) => symbols.lookup(address));
    const { missing } = symbols.takeFileStats();
    symbols.close();
    let isNew = false;
    for (const buildId of debuginfod && round < MAX_FETCHES ? missing : []) {
      const found = await debuginfod!.find(buildId);
      if (found === undefined) remark(`no server gave the debug information of build ID ${buildId}`);
      if (found === undefined) continue;
      fetched[buildId] = found;
      isNew = true;
    }
    if (!isNew) return chains;
  }
}

const hex = (address: number): string => `0x${address.toString(16)}`;

function formatJson(address: number, frames: SymbolFrame[]): string {
  const shown = frames.map(({ function: name, file, line, column, inlined }) => ({
    function: name,
    file,
    line,
    column,
    inlined,
  }));
  return `${JSON.stringify({ address: hex(address), frames: shown })}\n`;
}

function formatText(address: number, frames: SymbolFrame[]): string {
  const texts = frames.map(({ function: name, file, line, column, inlined }) => {
    const place = file && `${file}${line ? `:${line}${column ? `:${column}` : ''}` : ''}`;
    return [name || '?', place && `at ${place}`, inlined && '(inlined)'].filter(Boolean).join(' ');
  });
  return `${hex(address).padEnd(18)} ${texts.join(`\n${' '.repeat(19)}`) || '?'}\n`;
}
