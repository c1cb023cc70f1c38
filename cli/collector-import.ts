/** `everyframe collector import FILE…`: profiles from files into a running collector, or into its directory. */
import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { readTime } from '../collector/api/parameters.ts';
import type { ImportResult } from '../collector/api/types.ts';
import { Importer, MAX_IMPORT_BYTES } from '../collector/import/importer.ts';
import { COLLECTOR_DEFAULTS } from '../collector/main.ts';
import { readableEndings } from '../common/profile/formats.ts';
import { makeLogger } from './logger.ts';
import { DEFAULT_URL, send } from './query-client.ts';

interface Flags {
  url: string;
  data?: string;
  at?: string;
}

interface FileToImport {
  path: string;
  bytes: Buffer;
  modifiedMs: number;
}

export function registerImport(collector: Command): void {
  collector
    .command('import')
    .description('store profiles from files, to be seen like those that agents send')
    .argument('<FILE...>', readableEndings())
    .option('--url <URL>', 'a running collector', DEFAULT_URL)
    .option('--data <DIR>', 'instead: the directory of a collector that is not running')
    .option(
      '--at <TIME>',
      'when the newest sample is to have happened, such as now, -1h or 2026-01-31T12:00:00Z (default: as the file says, or when it was written)',
    )
    .action(async (files: string[], flags: Flags) => {
      const importFile = flags.data === undefined ? overHttp(flags) : await intoDirectory(flags);
      try {
        for (const path of files) report(await importFile.run(readFile(path)));
      } finally {
        await importFile.end();
      }
    });
}

interface Target {
  run(file: FileToImport): Promise<ImportResult>;
  end(): Promise<void>;
}

function overHttp({ url, at }: Flags): Target {
  return {
    run: ({ path, bytes, modifiedMs }) =>
      send<ImportResult>(url, 'import', { name: basename(path), at, modified: modifiedMs }, bytes),
    end: async () => {},
  };
}

/** Nothing is dropped for its age or size: that is for the collector, which knows how much it is to keep. */
async function intoDirectory({ data, at }: Flags): Promise<Target> {
  const { DuckDbStore } = await import('../collector/store/duckdb-store.ts');
  const store = await DuckDbStore.open({
    directory: data!,
    maxBytes: Number.POSITIVE_INFINITY,
    maxAgeMs: Number.POSITIVE_INFINITY,
    now: Date.now,
    logger: makeLogger('import'),
  }).catch((error: Error) => {
    const holder = /PID (\d+)/.exec(error.message)?.[1];
    if (holder === undefined) throw new Error(`--data ${data}: ${error.message}`);
    throw new Error(`--data ${data} is in use by process ${holder}: give its --url instead`);
  });
  const importer = new Importer(store, Date.now);
  const endMs = at === undefined ? undefined : readTime('--at', at, Date.now());
  return {
    run: ({ path, bytes, modifiedMs }) =>
      importer.import(bytes, { fileName: basename(path), endMs, fallbackEndMs: modifiedMs }),
    end: () => store.close(),
  };
}

function readFile(path: string): FileToImport {
  try {
    const { size, mtimeMs } = statSync(path);
    if (size > MAX_IMPORT_BYTES)
      throw new Error(`it has ${size} bytes, and at most ${MAX_IMPORT_BYTES} are taken`);
    return { path, bytes: readFileSync(path), modifiedMs: Math.floor(mtimeMs) };
  } catch (error) {
    throw new Error(`${path} can't be imported: ${(error as Error).message}`);
  }
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
  if (ageMs > COLLECTOR_DEFAULTS.maxDiskAgeMs)
    return '; a collector drops what is so old unless its --max-age says otherwise (or import with --at now)';
  return ageMs > 15 * 60_000 ? '; on the page choose that time, or all' : '';
}
