import type { Command } from 'commander';
import type { Debuginfod } from '../agent/symbols/debuginfod.ts';
import type { SymbolFrame } from '../common/symbols/source.ts';
import { AddressNamer } from './address-namer.ts';
import { parseAddress, withElf } from './open-elf.ts';

interface Options {
  json?: boolean;
  debuginfod?: boolean;
}

/** Addresses of standard input that are looked up together, which bounds memory: their answers wait for each other. */
const BATCH = 1 << 17;
/** Answers that are written together. */
const ANSWERS_AT_ONCE = 256;

export function registerShowSymbol(show: Command): void {
  show
    .command('symbol')
    .description('name addresses of an ELF file, with the functions that were inlined there')
    .argument('<ELF>', 'executable, shared library or its separate debug information')
    .argument(
      '<ADDRESS...>',
      'ELF virtual addresses (0x… or decimal); - reads them from standard input, one a line',
    )
    .option('--json', 'one JSON object a line')
    .option('--debuginfod', 'fetch debug information that is missing here from DEBUGINFOD_URLS')
    .action((path: string, addresses: string[], options: Options) => showSymbol(path, addresses, options));
}

async function showSymbol(path: string, texts: string[], options: Options): Promise<void> {
  const given = texts.filter((text) => text !== '-').map((text) => parseAddress(text, 'ADDRESS'));
  const format = options.json ? formatJson : formatText;
  const debuginfod = options.debuginfod ? await openDebuginfod() : undefined;
  return withElf(path, async (elf) => {
    const namer = new AddressNamer(elf, path, debuginfod, remark);
    const answer = async (addresses: readonly number[]): Promise<void> =>
      print(addresses, await namer.lookUp(addresses), format);
    try {
      await answer(given);
      if (texts.includes('-')) for await (const batch of readAddresses()) await answer(batch);
    } finally {
      namer.close();
    }
  });
}

/** Of standard input. */
async function* readAddresses(): AsyncGenerator<number[]> {
  const { createInterface } = await import('node:readline');
  let batch: number[] = [];
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === '') continue;
    batch.push(parseAddress(line.trim(), 'the address of standard input'));
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

function print(
  addresses: readonly number[],
  chains: readonly SymbolFrame[][],
  format: (address: number, frames: SymbolFrame[]) => string,
): void {
  for (let first = 0; first < addresses.length; first += ANSWERS_AT_ONCE) {
    const some = addresses.slice(first, first + ANSWERS_AT_ONCE);
    process.stdout.write(some.map((address, i) => format(address, chains[first + i]!)).join(''));
  }
}

/** Loaded where it is asked for: naming one address takes less time than reading what fetches files. */
async function openDebuginfod(): Promise<Debuginfod> {
  const { Debuginfod } = await import('../agent/symbols/debuginfod.ts');
  const { debuginfodFromEnvironment } = await import('../agent/symbols/debuginfod-settings.ts');
  return new Debuginfod(debuginfodFromEnvironment(process.env), remark);
}

const remark = (message: string): void => void process.stderr.write(`everyframe: ${message}\n`);

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
