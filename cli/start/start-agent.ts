/** What `agent`, `run` and `record` share: rights checked, settings turned into the controller's. */

import type { Logger } from 'pino';
import { raiseCompilerBudget } from '../../agent/base/compiler-budget.ts';
import { loadNative } from '../../agent/base/native.ts';
import { Controller } from '../../agent/controller.ts';
import type { ControllerOptions } from '../../agent/controller-options.ts';
import { isProbe } from '../../agent/events/event-spec.ts';
import { hasLocks } from '../../agent/events/event-types.ts';
import { CAP_SYS_ADMIN_BIT, hasCapability } from '../../agent/host/capabilities.ts';
import { checkPlace } from '../../agent/host/host-checks.ts';
import { type HostFacts, missingCapabilities, readHostFacts } from '../../agent/host/host-facts.ts';
import type { ProfileSink } from '../../agent/intervals.ts';
import { hasCgroup } from '../../agent/processes/cgroup-targets.ts';
import { readSmallFile } from '../../agent/processes/proc-files.ts';
import { type AgentOptions, samplesWaits } from '../../agent/settings/options.ts';
import { debuginfodFromEnvironment } from '../../agent/symbolizer/debuginfod/debuginfod-settings.ts';
import type { OffCpuOptions } from '../../agent/tracer/off-cpu.ts';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { placeOfCache } from './cache-place.ts';
import { agentBudget, readMemoryLimit } from './memory-limit.ts';
import { keepSamplingRights } from './rights.ts';

/**
 * Starts sampling, with no more rights than that takes from then on, and `rights` (bits of capabilities); says which are
 * missing and what each costs. Throws with a sentence.
 */
export async function startController(
  options: ControllerOptions,
  sink: ProfileSink,
  log: Logger,
  rights: readonly number[] = [],
): Promise<Controller> {
  raiseCompilerBudget();
  const facts = readHostFacts();
  refuseWhereHopeless(facts);
  for (const { name, cost, severity } of missingCapabilities(facts)) {
    const text = `${name} is missing: ${cost}`;
    if (severity === 'fatal') throw new Error(`${text}. Run as root, or give the process that capability`);
    log.warn(text);
  }
  for (const cgroup of options.cgroups ?? [])
    if (!hasCgroup(cgroup)) log.warn(`no cgroup is ${cgroup}: nothing of it is sampled until there is one`);
  for (const cgroup of options.excludedCgroups ?? [])
    if (!hasCgroup(cgroup)) log.warn(`no cgroup is ${cgroup}: nothing is left out until there is one`);
  keepSamplingRights(facts, [...rights, ...rightsToProbe(facts, options)]);
  return Controller.start(options, sink, {
    info: (message) => log.info(message),
    warn: (message) => log.warn(message),
    debug: (message) => log.debug(message),
  });
}

/**
 * Where one link can't set several probes in user code, the kernel lets nobody else set one (perf_uprobe_event_init), nor follow a
 * file that is replaced. Throws where the right is missing.
 */
function rightsToProbe({ capabilities }: HostFacts, { events }: ControllerOptions): number[] {
  if (!events?.specs.some(isProbe) || loadNative().hasUprobeMulti()) return [];
  if (capabilities !== undefined && !hasCapability(capabilities, CAP_SYS_ADMIN_BIT))
    throw new Error(
      'CAP_SYS_ADMIN is missing: this kernel, older than Linux 6.6, asks for it for events that set probes in user code (malloc, uprobe, uretprobe, usdt). Run as root; for everyframe-agent.service see probes.conf beside config.schema.json',
    );
  return [CAP_SYS_ADMIN_BIT];
}

/** The doctor's own words. */
function refuseWhereHopeless(facts: HostFacts): void {
  const fatal = checkPlace(facts);
  if (fatal) throw new Error(`${fatal.name}: ${fatal.message}: ${fatal.fix}`);
}

/** Says where nothing can be kept for later runs. */
export const controllerOptions = (
  options: AgentOptions,
  log: Logger,
  beside: { withCollector?: boolean } = {},
): ControllerOptions => ({
  samplesPerSecond: options.samplesPerSecond,
  symbols: options.symbols,
  symbolCache: placeOfCache(options.symbolCache, process.env, (text) => log.info(text)),
  ...(options.debuginfod && { debuginfod: debuginfodFromEnvironment(process.env) }),
  sourceMaps: !options.noSourceMaps,
  sendIdleFrames: options.sendIdleFrames,
  cgroups: options.cgroup.length > 0 ? options.cgroup : undefined,
  excludedCgroups: options.excludeCgroup.length > 0 ? options.excludeCgroup : undefined,
  maxUserFrames: options.maxUserFrames,
  maxTableBytes: options.maxTableBytes,
  ...(options.maxCpu > 0 && { maxCpu: options.maxCpu / 100 }),
  maxMemoryBytes: agentBudget(options.maxMemory, readMemoryLimit(), log, beside),
  intervalMs: options.reporterInterval,
  jitter: options.reporterJitter,
  labels: !options.noLabels,
  goroutineIds: options.goroutineIds,
  offCpu: offCpuOptions(options),
  ...(options.event.length > 0 && { events: { specs: options.event, budget: options.eventBudget } }),
  watchLoop: options.selfMetrics || options.verbose,
  probabilisticThreshold: options.probabilisticThreshold,
  probabilisticIntervalMs: options.probabilisticInterval,
});

function offCpuOptions(options: AgentOptions): OffCpuOptions | undefined {
  const { offCpuThreshold, offCpuBudget, event, eventBudget } = options;
  const isAsked = samplesWaits(options);
  if (!hasLocks(event))
    return isAsked ? { probability: offCpuThreshold || undefined, budget: offCpuBudget } : undefined;
  if (isAsked)
    throw new BadSetting(
      '--event lock and --off-cpu were given: waits for locks are those of --off-cpu with thread.state=blocked:lock',
    );
  return { budget: eventBudget, isOfLocks: true };
}

/** Under `npm start` one Ctrl-C arrives twice: from the terminal, and passed on by npm. */
const SAME_KEY_PRESS_MS = 1000;

/** Resolves at the first SIGTERM, SIGINT or SIGHUP (unless that means something else, or nohup(1) has it ignored); a second one ends the process at once. */
export function untilSignal({ onHangup = true } = {}): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let stoppingSince: number | undefined;
    const onSignal = (signal: NodeJS.Signals): void => {
      const now = performance.now();
      stoppingSince ??= now;
      if (now - stoppingSince > SAME_KEY_PRESS_MS) process.exit(130);
      resolve(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
    if (onHangup && !isHangupIgnored()) process.on('SIGHUP', onSignal);
  });
}

/** Bit 0 of SigIgn is signal 1. Node does not say, and a handler would undo it. */
const isHangupIgnored = (): boolean =>
  /^SigIgn:\s*[0-9a-f]*[13579bdf]$/m.test(readSmallFile('/proc/self/status') ?? '');
