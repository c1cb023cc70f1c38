/** `everyframe view FILE`: a profile in the page, served by a collector that holds nothing else and ends with Ctrl-C. */

import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { placeProfiles } from '../../collector/import/place.ts';
import { type Collector, startCollector } from '../../collector/main.ts';
import { UNPRIVILEGED_USER } from '../../collector/settings/options.ts';
import { CollectorStartError } from '../../collector/settings/start-error.ts';
import { readableEndings } from '../../common/profile/formats/formats.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import { addReadFlags, ensureHeap, loadProfiles, type ReadFlags } from '../output/profile-files.ts';
import { addExamples } from '../program/examples.ts';
import { makePlainLogger } from '../program/logger.ts';
import { becomeUser, findUser } from '../start/collector-user.ts';
import { untilSignal } from '../start/start-agent.ts';

const FREE_PORT = '127.0.0.1:0';
/** Files are as old as they are. */
const MAX_AGE_MS = 100 * 365 * 86_400_000;
const STORE_BYTES = 2 ** 30;

interface ViewFlags extends ReadFlags {
  listen: string;
  browser: boolean;
}

export function registerView(program: Command): void {
  const command = program
    .command('view')
    .description('open a profile in the page: serves it from memory on this machine until Ctrl-C')
    .argument('<FILE>', `${readableEndings()}, packed with gzip or not; - is standard input`)
    .option('--listen <HOST:PORT>', 'where the page is; port 0 takes a free one', FREE_PORT)
    .option('--no-browser', 'only print the address')
    .action(view);
  addExamples(addReadFlags(command), [
    [
      'everyframe view profile.pb.gz',
      'prints the address of the page, and opens a browser where there is one',
    ],
    ['perf script | everyframe view - --from perf-script', 'what perf recorded'],
  ]);
}

async function view(file: string, flags: ViewFlags): Promise<void> {
  ensureHeap(flags);
  const { profiles } = await loadProfiles(file, flags);
  if (profiles.every(({ samples }) => samples.length === 0)) throw new Error(`${file} has no samples`);
  placeProfiles(profiles, {
    endMs: undefined,
    fallbackEndMs: file === '-' ? Date.now() : statSync(file).mtimeMs,
    processName: basename(file).replace(/\..*$/, '') || 'imported',
  });
  const collector = await startCollector({
    ...{ grpcListen: FREE_PORT, httpListen: FREE_PORT, pageListen: flags.listen },
    ...{ maxMemoryBytes: STORE_BYTES, maxAgeMs: MAX_AGE_MS },
    logger: makePlainLogger('view'),
  }).catch((error: Error) => {
    throw new Error(inWordsOfView(error.message));
  });
  // what everybody on this machine can reach needs no rights
  if (process.getuid?.() === 0) giveUpRoot();
  const signalled = untilSignal();
  const type = flags.type === undefined ? '' : `&type=${encodeURIComponent(flags.type)}`;
  const url = `${await store(collector, file, profiles)}${type}`;
  announce(url);
  if (flags.browser) openBrowser(url);
  await signalled;
  await collector.stop();
}

/** The flag that it has in place of the collector's, and no others of that. */
const inWordsOfView = (message: string): string =>
  message
    .replaceAll('--page-listen', '--listen')
    .replace(
      / is beyond this machine,.*/,
      ' is beyond this machine: view serves this machine alone; `everyframe collector import FILE` gives it to a collector that others reach',
    );

/** As far as that is possible: `record --view` has given up the right to become another user. */
function giveUpRoot(): void {
  try {
    becomeUser(findUser(UNPRIVILEGED_USER));
  } catch (error) {
    if (!(error instanceof CollectorStartError)) throw error;
  }
}

/** @returns where the page shows all of it */
async function store(collector: Collector, file: string, profiles: readonly Profile[]): Promise<string> {
  const kept = collector.tenants[0]!.store;
  const results = profiles.map((profile) => kept.append(profile));
  await kept.commit();
  for (const [reason, count] of results.flatMap(({ rejected }) => [...rejected]))
    process.stderr.write(`everyframe: warning: ${count} samples of ${file} are left out: ${reason}\n`);
  if (results.every(({ stored }) => stored === 0)) throw new Error(`nothing of ${file} can be shown`);
  const ranges = profiles.filter(({ samples }) => samples.length > 0).map(rangeOf);
  const fromMs = Math.min(...ranges.map((range) => range.fromMs));
  const toMs = Math.max(...ranges.map((range) => range.toMs));
  return `${collector.urls.page}#from=${fromMs}&to=${toMs}`;
}

/** Milliseconds that hold the profile's window and all samples; a second at least, or there is no timeline. */
function rangeOf({ samples, timeUnixNano, durationNano }: Profile): { fromMs: number; toMs: number } {
  let [from, to] = [timeUnixNano, timeUnixNano + durationNano];
  for (const { timestamps } of samples) {
    for (const time of timestamps.length > 0 ? timestamps : [timeUnixNano + durationNano]) {
      if (time < from) from = time;
      if (time > to) to = time;
    }
  }
  const toMs = Number(to / 1_000_000n) + 1;
  return { fromMs: Math.min(Number(from / 1_000_000n), toMs - 1000), toMs };
}

function announce(url: string): void {
  const { port } = new URL(url);
  console.log(`Open ${url}`);
  if (process.env['SSH_CONNECTION'])
    console.log(
      `From your own machine: ssh -L ${port}:127.0.0.1:${port} ${process.env['SUDO_USER'] ?? userInfo().username}@${hostname()}`,
    );
  console.log('Ctrl-C ends it.');
}

/** A browser should not run as root, and needs a screen. */
function openBrowser(url: string): void {
  const hasScreen = process.env['DISPLAY'] !== undefined || process.env['WAYLAND_DISPLAY'] !== undefined;
  if (!hasScreen || process.getuid?.() === 0 || userInfo().username === UNPRIVILEGED_USER) return;
  const child = spawn('xdg-open', [url], { stdio: 'ignore', detached: true });
  child.once('error', () => {});
  child.unref();
}
