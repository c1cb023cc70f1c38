/** What `agent`, `run` and `record` share: rights checked, settings turned into the controller's. */
import type { Logger } from 'pino';
import { Controller, type ControllerOptions, type ProfileSink } from '../agent/controller.ts';
import type { AgentOptions } from '../agent/options.ts';
import { debuginfodFromEnvironment } from '../agent/symbols/debuginfod-settings.ts';
import { missingCapabilities, readHostFacts } from '../agent/tracer/host-facts.ts';
import { placeOfCache } from './cache-place.ts';
import { raiseCompilerBudget } from './compiler-budget.ts';

/** Starts sampling; says which rights are missing and what each costs. Throws with a sentence. */
export function startController(
  options: ControllerOptions,
  sink: ProfileSink,
  log: Logger,
): Promise<Controller> {
  raiseCompilerBudget();
  for (const { name, cost, severity } of missingCapabilities(readHostFacts())) {
    const text = `${name} is missing: ${cost}`;
    if (severity === 'fatal') throw new Error(`${text}. Run as root, or give the process that capability`);
    log.warn(text);
  }
  return Controller.start(options, sink, {
    info: (message) => log.info(message),
    warn: (message) => log.warn(message),
    debug: (message) => log.debug(message),
  });
}

/** Says where nothing can be kept for later runs. */
export const controllerOptions = (options: AgentOptions, log: Logger): ControllerOptions => ({
  samplesPerSecond: options.samplesPerSecond,
  symbols: options.symbols,
  symbolCache: placeOfCache(options.symbolCache, process.env, (text) => log.info(text)),
  ...(options.debuginfod && { debuginfod: debuginfodFromEnvironment(process.env) }),
  sourceMaps: !options.noSourceMaps,
  sendIdleFrames: options.sendIdleFrames,
  maxUserFrames: options.maxUserFrames,
  maxTableBytes: options.maxTableBytes,
  maxMemoryBytes: options.maxMemory,
  ...(options.maxCpu > 0 && { maxCpu: options.maxCpu / 100 }),
  intervalMs: options.reporterInterval,
  jitter: options.reporterJitter,
  watchLoop: options.selfMetrics || options.verbose,
  probabilisticThreshold: options.probabilisticThreshold,
  probabilisticIntervalMs: options.probabilisticInterval,
});

/** Under `npm start` one Ctrl-C arrives twice: from the terminal, and passed on by npm. */
const SAME_KEY_PRESS_MS = 1000;

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
export function untilSignal(): Promise<NodeJS.Signals> {
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
  });
}
