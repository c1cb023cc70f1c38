import type { Command } from 'commander';
import { placeOf } from '../agent/symbols/debug-files.ts';
import { openSymbols } from '../agent/symbols/open-symbols.ts';
import type { SymbolFrame } from '../common/symbols/source.ts';
import { parseAddress, withElf } from './open-elf.ts';

interface Options {
  json?: boolean;
}

export function registerShowSymbol(show: Command): void {
  show
    .command('symbol')
    .description('name addresses of an ELF file, with the functions that were inlined there')
    .argument('<ELF>', 'executable, shared library or its separate debug information')
    .argument('<ADDRESS...>', 'ELF virtual addresses (0x… or decimal)')
    .option('--json', 'one JSON object a line')
    .action((path: string, addresses: string[], options: Options) => showSymbol(path, addresses, options));
}

function showSymbol(path: string, texts: string[], options: Options): Promise<void> {
  const addresses = texts.map((text) => parseAddress(text, 'ADDRESS'));
  const format = options.json ? formatJson : formatText;
  return withElf(path, async (elf) => {
    const symbols = await openSymbols(elf, placeOf(path));
    try {
      for (const address of addresses) process.stdout.write(format(address, symbols.lookup(address)));
    } finally {
      symbols.close();
    }
  });
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
