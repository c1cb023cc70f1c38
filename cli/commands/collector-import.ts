/**
 * `everyframe collector import FILE…`: profiles, and programs and debug files that name their functions, into a running
 * collector or into its directory.
 */

import { closeSync, createReadStream, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { copyFile, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Command } from 'commander';
import { readTime } from '../../collector/api/parameters.ts';
import type { SymbolsResult } from '../../collector/api/types.ts';
import type { ImportResult } from '../../collector/import/import-result.ts';
import { Importer } from '../../collector/import/importer.ts';
import { MAX_IMPORT_BYTES } from '../../collector/import/limits.ts';
import { COLLECTOR_DEFAULTS } from '../../collector/settings/options.ts';
import { MAX_SYMBOL_FILE_BYTES } from '../../collector/symbols/symbol-files.ts';
import { ELF_MAGIC, SymbolIntake } from '../../collector/symbols/symbol-intake.ts';
import { SymbolSources } from '../../collector/symbols/symbol-sources.ts';
import { directoryInWords, inWords } from '../../common/base/system-error.ts';
import { readableEndings } from '../../common/profile/formats/formats.ts';
import { addExamples } from '../program/examples.ts';
import { makeLogger } from '../program/logger.ts';
import { addCollectorFlags, type CollectorFlags, send } from '../query/query-client.ts';

interface Flags extends CollectorFlags {
  data?: string;
  at?: string;
}

interface FileToImport {
  path: string;
  /** By its first bytes: it names functions of stored samples. */
  isElf: boolean;
  modifiedMs: number;
}

export function registerImport(collector: Command): void {
  const command = addCollectorFlags(collector.command('import'))
    .description('store profiles from files, or names for stored frames from programs and debug files')
    .argument('<FILE...>', `${readableEndings()}, or an ELF file with symbols or debug information`)
    .option('--data <DIR>', 'instead: the directory of a collector that is not running')
    .option(
      '--at <TIME>',
      'when the newest sample is to have happened, such as now, -1h or 2026-01-31T12:00:00Z (default: as the file says, or when it was written)',
    )
    .action(async (files: string[], flags: Flags) => {
      const target = flags.data === undefined ? overHttp(flags) : await intoDirectory(flags);
      try {
        for (const path of files) {
          const file = look(path);
          if (file.isElf) reportSymbols(await target.addSymbols(file));
          else report(await target.addProfile(file));
        }
      } finally {
        await target.end();
      }
    });
  addExamples(command, [
    ['everyframe collector import profile.pb.gz --at now', 'a recording, shown at the present'],
    ['everyframe collector import /usr/lib/debug/app.debug', 'names for frames that are stored already'],
  ]);
}

interface Target {
  addProfile(file: FileToImport): Promise<ImportResult>;
  addSymbols(file: FileToImport): Promise<SymbolsResult>;
  end(): Promise<void>;
}

function overHttp({ at, ...collector }: Flags): Target {
  return {
    addProfile: ({ path, modifiedMs }) =>
      send(collector, 'import', { name: basename(path), at, modified: modifiedMs }, readFileSync(path)),
    addSymbols: ({ path }) => send(collector, 'symbols', { name: basename(path) }, createReadStream(path)),
    end: async () => {},
  };
}

/** Nothing is dropped for its age or size: that is for the collector, which knows how much it is to keep. */
async function intoDirectory({ data, at }: Flags): Promise<Target> {
  const { DuckDbStore } = await import('../../collector/store/duckdb/duckdb-store.ts');
  const logger = makeLogger('import');
  const store = await DuckDbStore.open({
    directory: data!,
    maxBytes: Number.POSITIVE_INFINITY,
    maxAgeMs: Number.POSITIVE_INFINITY,
    now: Date.now,
    logger,
  }).catch((error: Error) => {
    const holder = /PID (\d+)/.exec(error.message)?.[1];
    if (holder === undefined) throw new Error(`--data ${data}: ${directoryInWords(error)}`);
    throw new Error(`--data ${data} is in use by process ${holder}: give its --url instead`);
  });
  const importer = new Importer(store, Date.now);
  const symbols = new SymbolSources(join(data!, 'symbols'), logger);
  const intake = new SymbolIntake(symbols, store, Date.now);
  const endMs = at === undefined ? undefined : readTime('--at', at, Date.now());
  return {
    addProfile: ({ path, modifiedMs }) =>
      importer.import(readFileSync(path), { fileName: basename(path), endMs, fallbackEndMs: modifiedMs }),
    async addSymbols({ path }) {
      const incoming = symbols.files.incomingPath();
      try {
        await copyFile(path, incoming);
        return { fileName: basename(path), ...(await intake.take(basename(path), incoming)) };
      } finally {
        await rm(incoming, { force: true });
      }
    },
    async end() {
      await symbols.close();
      await store.close();
    },
  };
}

/** What a file is; one that is too large is said to be so before it is read. */
function look(path: string): FileToImport {
  try {
    const { size, mtimeMs } = statSync(path);
    const isElf = startsAsElf(path);
    const maxBytes = isElf ? MAX_SYMBOL_FILE_BYTES : MAX_IMPORT_BYTES;
    if (size > maxBytes) throw new Error(`it has ${size} bytes, and at most ${maxBytes} are taken`);
    return { path, isElf, modifiedMs: Math.floor(mtimeMs) };
  } catch (error) {
    throw new Error(`${path} can't be imported: ${inWords(error)}`);
  }
}

function startsAsElf(path: string): boolean {
  const file = openSync(path, 'r');
  try {
    const start = Buffer.alloc(4);
    return readSync(file, start, 0, 4, 0) === 4 && start.readUInt32BE(0) === ELF_MAGIC;
  } finally {
    closeSync(file);
  }
}

function reportSymbols({ fileName, sources, nameless, named }: SymbolsResult): void {
  const kept = `${fileName}: names from ${sources.join(' and ')} are kept`;
  if (nameless > 0)
    console.log(`${kept}; ${named} of ${nameless} stored addresses without a name have one now`);
  else console.log(`${kept}; no stored stack needs them: samples that arrive without names will`);
}

function report({ fileName, samples, rejected, fromMs, toMs, repeated }: ImportResult): void {
  const lost = rejected.reduce((sum, { count }) => sum + count, 0);
  for (const { reason, count } of rejected)
    console.error(`${fileName}: ${count} samples left out: ${reason}`);
  if (repeated && lost === 0) console.log(`${fileName}: imported before, nothing added`);
  else
    console.log(
      `${fileName}: ${samples} samples, ${formatTime(fromMs)} to ${formatTime(toMs - 1)}${hint(fromMs)}`,
    );
  if (lost === 0 || samples > 0) return;
  console.error(`${fileName}: nothing of it is stored; --at now puts it at the present`);
  process.exitCode = 1;
}

const formatTime = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

/** A page that shows the last minutes would seem empty. */
function hint(fromMs: number): string {
  const ageMs = Date.now() - fromMs;
  if (ageMs > COLLECTOR_DEFAULTS.maxAgeMs.kept)
    return '; a collector drops what is so old unless its --max-age says otherwise (or import with --at now)';
  return ageMs > 15 * 60_000 ? '; on the page choose that time, or all' : '';
}
