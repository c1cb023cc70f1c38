import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { type Command, Option } from 'commander';
import { packageRoot } from '../../agent/base/package-root.ts';
import type { Controller } from '../../agent/controller.ts';
import type { EventSpec } from '../../agent/events/event-spec.ts';
import { hasLocks, sourceTypes } from '../../agent/events/event-types.ts';
import {
  AGENT_SETTINGS,
  type AgentOptions,
  parseAgentOptions,
  parseDuration,
} from '../../agent/settings/options.ts';
import { toPid } from '../../common/base/brand.ts';
import { IDLE_MODES, type IdleMode } from '../../common/profile/filters/idle-pools.ts';
import { checkReadable } from '../../common/profile/formats/formats.ts';
import { mainOf, type Profile, type ProfileSet } from '../../common/profile/model/profile.ts';
import { findType, type ProfileType, typeName } from '../../common/profile/model/profile-type.ts';
import { LOCK, OFF_CPU } from '../../common/profile/model/thread-types.ts';
import { isStream } from '../output/output-file.ts';
import {
  addWriteFlags,
  checkOutput,
  droppedTypes,
  OUTPUT_HELP,
  saveProfiles,
  type WriteFlags,
} from '../output/profile-files.ts';
import { lostSamples, type Recorded, recordSummary } from '../output/record-summary.ts';
import { Recording } from '../output/recording.ts';
import { requireType, requireWaits } from '../output/sampled-types.ts';
import { addExamples } from '../program/examples.ts';
import { RECORD_FREQUENCY, RECORD_FREQUENCY_HELP } from '../program/frequency.ts';
import { IDLE_HELP } from '../program/idle-help.ts';
import { makePlainLogger } from '../program/logger.ts';
import { addSetting, withChoices } from '../program/settings.ts';
import {
  type Chosen,
  choicesOf,
  collectPid,
  filesOfChosen,
  PID_HELP,
  requireChosen,
  untilGone,
} from '../start/chosen-processes.ts';
import { filesOfCommand } from '../start/expected-files.ts';
import { RIGHTS_TO_END_COMMANDS, rightsToWrite } from '../start/rights.ts';
import { controllerOptions, startController, untilSignal } from '../start/start-agent.ts';

interface RecordFlags extends WriteFlags, Chosen {
  duration?: string;
  frequency: string;
  symbols: string;
  symbolCache?: string;
  debuginfod?: boolean;
  event?: string[];
  eventBudget?: string;
  labels?: boolean;
  goroutineIds?: boolean;
  offCpu?: boolean;
  offCpuBudget?: string;
  offCpuThreshold?: string;
  verbose?: boolean;
  view?: boolean;
  type?: string;
  idle?: IdleMode;
}

/** Exit code where nothing was sampled, unless a command has a code of its own. */
const NOTHING_SAMPLED = 4;
/** A shell's exit codes for a command that is not there, or can't be executed. */
const NOT_RUN: readonly number[] = [126, 127];
const DEFAULT_DURATION = '10s';
/** A command that does not end at SIGTERM. */
const END_COMMAND_MS = 3000;
/** Where new programs are met all the time, it begins without the tables of some. */
const MAX_WARM_UP_MS = 5000;
const WARM_UP_LOOK_MS = 250;
const HOLDING_SHELL = '/bin/sh';

/** Settings that it has in common with the agent. */
const AS_AGENT = [
  ...['cgroup', 'exclude-cgroup', 'symbol-cache', 'debuginfod', 'event', 'event-budget'],
  ...['no-labels', 'goroutine-ids', 'off-cpu', 'off-cpu-budget', 'off-cpu-threshold'],
];

export function registerRecord(program: Command): void {
  const command = program
    .command('record')
    .description('profile the machine, chosen processes, or a command and its children, into a file')
    .argument('[COMMAND...]', 'after --: a command to run and profile; its exit code is passed through')
    .option(
      '-d, --duration <DURATION>',
      `how long; 0: until Ctrl-C (default: ${DEFAULT_DURATION}, or until the command ends)`,
    )
    .option('-F, --frequency <HZ>', RECORD_FREQUENCY_HELP, RECORD_FREQUENCY)
    .option('-p, --pid <PID>', PID_HELP, collectPid)
    .option('-o, --output <FILE>', OUTPUT_HELP, 'everyframe.pb.gz')
    .option('--symbols <full|names|off>', 'lines and inlined functions, functions only, or addresses', 'full')
    .addOption(withChoices(new Option('--idle <MODE>', `with --off-cpu, ${IDLE_HELP}`), IDLE_MODES))
    .option('--type <TYPE>', 'write only samples of this type (default: all that are sampled)')
    .option('--view', 'then open the recording in the page, as everyframe view does')
    .option('-v, --verbose', 'log more, and what was counted')
    .passThroughOptions()
    .action(record);
  for (const setting of AGENT_SETTINGS) if (AS_AGENT.includes(setting.flag)) addSetting(command, setting);
  addExamples(addWriteFlags(command), [
    ['everyframe record -d 30s -o machine.pb.gz', 'the whole machine, for half a minute'],
    ['everyframe record -o make.pb.gz --view -- make -j8', 'a command and its children, then the page'],
    ['everyframe record -p 1234 -o - | flamegraph.pl > a.svg', 'folded stacks of a process into a pipe'],
  ]).addHelpText(
    'after',
    `\nExit codes: that of the command; else 0, ${NOTHING_SAMPLED} where nothing was sampled, 1 for errors.`,
  );
}

function refuseTwoChoices(command: readonly string[], flags: RecordFlags): void {
  const { pid } = flags;
  if (command.length > 0 && command.every((word) => /^\d+$/.test(word))) {
    const list = [...(pid ?? []), ...command].join(',');
    throw new Error(
      pid
        ? `-p takes one PID or a list with commas: -p ${list}`
        : `${command.join(' ')} is no command: is -p ${list} meant?`,
    );
  }
  const given = [...choicesOf(flags), ...(command.length > 0 ? ['a command after --'] : [])];
  if (given.length > 1) throw new Error(`${given.join(' and ')} were given: a recording is of one of them`);
}

const growthOf = (counters: Record<string, number>, before: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(counters).map(([name, value]) => [name, value - (before[name] ?? 0)]));

/** Of which waits there would be samples, where those of nothing else were asked for. */
function whichWaits(
  types: readonly ProfileType[],
  events: readonly EventSpec[],
  type: string | undefined,
): Recorded['waits'] {
  const name = type === undefined ? undefined : typeName(types[findType(types, type)]!);
  if (name === LOCK || (name === undefined && hasLocks(events) && events.length === 1)) return 'locks';
  return name === OFF_CPU ? 'waits' : undefined;
}

const othersOf = ({ profiles, main }: ProfileSet): Profile[] => profiles.filter((_, i) => i !== main);

const agentOptions = (flags: RecordFlags): AgentOptions =>
  parseAgentOptions({
    samplesPerSecond: flags.frequency,
    reporterInterval: '1s',
    reporterJitter: '0',
    symbols: flags.symbols,
    symbolCache: flags.symbolCache,
    debuginfod: flags.debuginfod,
    event: flags.event,
    eventBudget: flags.eventBudget,
    noLabels: flags.labels === false,
    goroutineIds: flags.goroutineIds,
    cgroup: flags.cgroup,
    excludeCgroup: flags.excludeCgroup,
    offCpu: flags.offCpu,
    offCpuBudget: flags.offCpuBudget,
    offCpuThreshold: flags.offCpuThreshold,
    // the recording itself grows in this process
    maxMemory: '4GiB',
    maxCpu: '0',
  });

async function record(command: string[], flags: RecordFlags): Promise<void> {
  refuseTwoChoices(command, flags);
  checkOutput(flags);
  if (flags.view && isStream(flags.output)) throw new Error('--view needs a file: give -o FILE');
  if (flags.view) checkReadable(flags.output);
  requireChosen(flags);
  const log = makePlainLogger('record', flags.verbose);
  const options = agentOptions(flags);
  const types = sourceTypes(options.event).map((type) => ({ ...type, period: 0n }));
  if (flags.type !== undefined) requireType(flags.type, options);
  if (flags.idle !== undefined) requireWaits(options);
  const limitMs = durationOf(flags, command.length > 0);
  const signal = untilSignal();
  const child = command.length > 0 ? startHeld(command) : undefined;
  const sampling = endWhileStarting(signal, child);
  const targets = child ? [toPid(child.process.pid!)] : flags.pid;
  const recording = new Recording(types);
  let controller: Controller;
  try {
    controller = await startController(
      {
        ...controllerOptions(options, log),
        ...(targets && { targets }),
        expectedFiles: expectedFiles(command, flags),
      },
      recording,
      log,
      [...rightsToWrite(flags.output), ...(child ? RIGHTS_TO_END_COMMANDS : [])],
    );
  } catch (error) {
    child?.process.kill('SIGKILL');
    throw error;
  }
  sampling.begins();
  let began = performance.now();
  let before: Record<string, number> = {};
  const onBegin = (): void => {
    began = performance.now();
    before = controller.counters();
    recording.clear();
  };
  const isAnyLeft = (): boolean => !targets || controller.hasTargets;
  if (child) child.release();
  else await Promise.race([signal, warmUp(controller, isAnyLeft, onBegin)]);
  const progress = showProgress(recording, controller);
  await Promise.race(
    [
      signal,
      child?.ended ?? (targets && untilGone(controller)),
      limitMs > 0 ? sleep(limitMs) : undefined,
    ].filter((promise) => promise !== undefined),
  );
  clearInterval(progress);
  // names and lines of what came last take a moment, longer on a busy machine
  if (progress)
    process.stderr.write(
      `\r\x1b[K${recording.samples} samples, naming the last and writing ${flags.output} …\r\x1b[K`,
    );
  await controller.stop();
  const seconds = (controller.stoppedAtMs! - began) / 1000;
  if (child && recording.samples === 0 && NOT_RUN.includes(child.process.exitCode ?? 0)) {
    process.stderr.write(`everyframe: ${command[0]} could not be run: nothing is written\n`);
    process.exitCode = await exitCodeOf(child);
    return;
  }
  const counters = controller.counters();
  const isEmpty = await write(flags, {
    ...{ recording, seconds, events: controller.eventTotals(), counters: growthOf(counters, before) },
    waits: whichWaits(types, options.event, flags.type),
    isChosen: targets !== undefined || flags.cgroup !== undefined,
  });
  log.debug({ counters }, 'what the agent counted');
  if (child) process.exitCode = await exitCodeOf(child);
  if (isEmpty) process.exitCode ||= NOTHING_SAMPLED;
  else if (flags.view) await viewFile(flags.output);
}

interface Taken extends Pick<Recorded, 'seconds' | 'counters' | 'events' | 'waits' | 'isChosen'> {
  recording: Recording;
}

/** Says what it wrote, and what not. True: no samples. */
async function write(flags: RecordFlags, { recording, ...taken }: Taken): Promise<boolean> {
  const recorded = recording.finish(flags);
  await saveProfiles(flags, recorded);
  const [profile, dropped] = [mainOf(recorded), droppedTypes(flags, recorded)];
  const summary = recordSummary({
    ...{ ...taken, profile, others: dropped ? [] : othersOf(recorded), output: flags.output },
    isViewed: flags.view === true,
  });
  for (const line of [...summary, ...(dropped ? [dropped] : [])])
    process.stderr.write(`everyframe: ${line}\n`);
  return profile.samples.length === 0;
}

/** In a process of its own, without what sampling holds. */
function viewFile(file: string): Promise<void> {
  const main = join(packageRoot(), 'dist/cli/main.js');
  const child = spawn(process.execPath, [main, 'view', file], { stdio: 'inherit' });
  // a signal that is sent to this process alone is for both; one key press that reaches both is one for it, too
  const end = (): unknown => child.kill('SIGTERM');
  for (const signal of ['SIGINT', 'SIGTERM', 'exit'] as const) process.once(signal, end);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () => resolve());
  });
}

/** As long as it starts there is nothing to write: a signal ends it at once, and the command never runs. */
function endWhileStarting(
  signal: Promise<NodeJS.Signals>,
  child: HeldCommand | undefined,
): { begins(): void } {
  let isStarting = true;
  void signal.then((name) => {
    if (!isStarting) return;
    child?.process.kill('SIGKILL');
    process.exit(128 + constants.signals[name]);
  });
  return {
    begins: () => {
      isStarting = false;
    },
  };
}

const expectedFiles = (command: readonly string[], chosen: Chosen): string[] => [
  // the shell that becomes the command is a target, too
  ...(command.length > 0 ? [[HOLDING_SHELL], command] : []).flatMap((each) =>
    filesOfCommand(each, environmentOfCommand(process.env)),
  ),
  ...filesOfChosen(chosen),
];

/**
 * The time that was asked for begins when what runs can be unwound: without this a recording of a second would be one
 * of stacks that lack their tables. What was sampled meanwhile is dropped.
 */
async function warmUp(controller: Controller, isAnyLeft: () => boolean, onBegin: () => void): Promise<void> {
  const end = performance.now() + MAX_WARM_UP_MS;
  let before: number;
  let cut = 0;
  let isReady: boolean;
  do {
    before = cut;
    await sleep(WARM_UP_LOOK_MS);
    isReady = await controller.tablesReady(Math.max(0, end - performance.now()));
    cut = controller.counters()['bpf.user_cut_pending'] ?? 0;
  } while ((cut > before || !isReady) && performance.now() < end);
  // of processes that have ended meanwhile there is nothing else
  if (isAnyLeft()) await controller.begin(onBegin);
}

/** Milliseconds, 0 for no limit. */
function durationOf({ duration }: RecordFlags, hasCommand: boolean): number {
  if (duration === undefined) return hasCommand ? 0 : parseDuration(DEFAULT_DURATION);
  return Number(duration) === 0 ? 0 : parseDuration(duration);
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms).unref());

function showProgress(recording: Recording, controller: Controller): NodeJS.Timeout | undefined {
  if (!process.stderr.isTTY) return undefined;
  const started = Date.now();
  return setInterval(() => {
    const seconds = Math.round((Date.now() - started) / 1000);
    const lost = lostSamples(controller.counters());
    const losses = lost === 0 ? 'none lost' : `${lost} lost`;
    process.stderr.write(
      `\r\x1b[K${seconds} s, ${recording.samples} samples, ${losses}; Ctrl-C writes the file `,
    );
  }, 1000);
}

interface HeldCommand {
  process: ChildProcess;
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Lets the command begin. */
  release(): void;
}

/**
 * The command's process waits in a shell until sampling has begun, so that not even its first instruction is
 * missed; then the shell becomes the command, under the same PID.
 */
function startHeld(command: string[]): HeldCommand {
  // it never starts where the recorder is gone, and with it what is read
  const script = 'read -r _ <&3 || exit 1; exec 3<&-; exec "$@"';
  const child = spawn(HOLDING_SHELL, ['-c', script, 'sh', ...command], {
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    env: environmentOfCommand(process.env),
  });
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const gate = child.stdio[3] as Writable;
  gate.on('error', () => {});
  return { process: child, ended, release: () => gate.end('\n') };
}

/** Without what bin/everyframe set for this product alone. */
function environmentOfCommand(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (env['EVERYFRAME_MALLOC'] === undefined) return env;
  const { MALLOC_ARENA_MAX: _arenas, MALLOC_TRIM_THRESHOLD_: _trim, EVERYFRAME_MALLOC: _mark, ...rest } = env;
  return rest;
}

/**
 * As a shell reports it: the code, or 128 + the signal's number. A command that still runs when time is up ends, if need
 * be by force.
 */
async function exitCodeOf(child: HeldCommand): Promise<number> {
  if (child.process.exitCode === null && child.process.signalCode === null) child.process.kill('SIGTERM');
  const force = setTimeout(() => child.process.kill('SIGKILL'), END_COMMAND_MS);
  const { code, signal } = await child.ended;
  clearTimeout(force);
  return signal ? 128 + (constants.signals[signal] ?? 0) : (code ?? 1);
}
