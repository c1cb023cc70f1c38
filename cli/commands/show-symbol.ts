import { once } from 'node:events';
import type { Command } from 'commander';
import type { Debuginfod } from '../../agent/symbolizer/debuginfod/debuginfod.ts';
import { addExamples } from '../program/examples.ts';
import { AddressNamer } from '../symbols/address-namer.ts';
import { type AnswerParts, answerAt } from '../symbols/answer-text.ts';
import { parseAddress, withElf } from '../symbols/open-elf.ts';

interface Options {
  json?: boolean;
  debuginfod?: boolean;
}

/** Addresses of standard input that are looked up together, which bounds memory: their answers wait for each other. */
const BATCH = 1 << 17;
const SHARED_FROM = 20_000;
/** Answers that are written together. */
const ANSWERS_AT_ONCE = 256;

export function registerShowSymbol(show: Command): void {
  const command = show
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
  addExamples(command, [
    ['everyframe show symbol /usr/bin/node 0x9a1234', 'the functions at an address, inlined ones first'],
    ['everyframe show symbol libfoo.so - < addresses.txt', 'many addresses at once'],
  ]);
}

async function showSymbol(path: string, texts: string[], options: Options): Promise<void> {
  const given = texts.filter((text) => text !== '-').map((text) => parseAddress(text, 'ADDRESS'));
  const json = options.json === true;
  const debuginfod = options.debuginfod ? await openDebuginfod() : undefined;
  return withElf(path, async (elf) => {
    const namer = new AddressNamer(elf, path, debuginfod, remark);
    /** Neighbours are answered by the same compilation unit: in ascending order each is read once. */
    const answer = async (addresses: readonly number[]): Promise<void> => {
      const order = Uint32Array.from(addresses, (_, i) => i).sort((a, b) => addresses[a]! - addresses[b]!);
      const ascending = Float64Array.from(order, (i) => addresses[i]!);
      const shares = debuginfod ? undefined : await shareOut(path, ascending, json);
      await print(shares ?? [await namer.answer(ascending, json)], order);
    };
    try {
      await answer(given);
      if (texts.includes('-')) for await (const batch of readAddresses()) await answer(batch);
    } finally {
      namer.close();
    }
  });
}

/** Undefined where that is not worth it: few addresses take less time than to load what starts threads. */
async function shareOut(
  path: string,
  ascending: Float64Array,
  json: boolean,
): Promise<AnswerParts[] | undefined> {
  if (ascending.length < SHARED_FROM) return undefined;
  const { nameInThreads, threadsFor } = await import('../symbols/parallel-namer.ts');
  const threads = threadsFor(ascending.length);
  return threads > 1 ? nameInThreads(path, ascending, { threads, json }) : undefined;
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

/** `shares`: runs of answers to `order`, which says which of the addresses comes there; each but the last is as long. */
async function print(shares: readonly AnswerParts[], order: Uint32Array): Promise<void> {
  const size = Math.ceil(order.length / shares.length);
  const ranks = new Uint32Array(order.length);
  for (const [rank, i] of order.entries()) ranks[i] = rank;
  for (let first = 0; first < ranks.length; first += ANSWERS_AT_ONCE) {
    const answers = Array.from(ranks.subarray(first, first + ANSWERS_AT_ONCE), (rank) =>
      answerAt(shares[Math.floor(rank / size)]!, rank % size),
    );
    // who reads slowly must not cost memory
    if (!process.stdout.write(Buffer.concat(answers))) await once(process.stdout, 'drain');
  }
}

/** Loaded where it is asked for: naming one address takes less time than reading what fetches files. */
async function openDebuginfod(): Promise<Debuginfod> {
  const { Debuginfod } = await import('../../agent/symbolizer/debuginfod/debuginfod.ts');
  const { debuginfodFromEnvironment } = await import(
    '../../agent/symbolizer/debuginfod/debuginfod-settings.ts'
  );
  return new Debuginfod(debuginfodFromEnvironment(process.env), remark);
}

const remark = (message: string): void => void process.stderr.write(`everyframe: ${message}\n`);
