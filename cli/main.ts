#!/usr/bin/env node
import type { Command } from 'commander';
import { samplingCommands } from './commands/sampling-commands.ts';
import { argumentsOf, newProgram, newShow, runProgram } from './program/program.ts';

const program = newProgram();
/** The parts that `show` prints, in the order of its help. */
const SHOW_PARTS: Record<string, (show: Command) => Promise<void>> = {
  'stack-deltas': async (show) =>
    (await import('./commands/show-stack-deltas.ts')).registerShowStackDeltas(show),
  symbol: async (show) => (await import('./commands/show-symbol.ts')).registerShowSymbol(show),
  object: async (show) => (await import('./commands/show-object.ts')).registerShowObject(show),
  programs: async (show) => (await import('./commands/show-programs.ts')).registerShowPrograms(show),
};
/** What a command needs is loaded with it: all of it together takes longer than naming an address. */
const COMMANDS: Record<string, () => Promise<void>> = {
  ...samplingCommands(program),
  collector: async () => (await import('./commands/collector.ts')).registerCollector(program),
  report: async () => (await import('./commands/report.ts')).registerReport(program),
  convert: async () => (await import('./commands/convert.ts')).registerConvert(program),
  view: async () => (await import('./commands/view.ts')).registerView(program),
  diff: async () => (await import('./commands/diff.ts')).registerDiff(program),
  query: async () => (await import('./commands/query.ts')).registerQuery(program),
  mcp: async () => (await import('./commands/mcp.ts')).registerMcp(program),
  doctor: async () => {
    const { probeSampler } = await import('./start/probe-sampler.ts');
    (await import('./commands/doctor.ts')).registerDoctor(program, [probeSampler]);
  },
  config: async () => (await import('./commands/config.ts')).registerConfig(program),
  show: async () => {
    const show = newShow(program);
    const parts = Object.hasOwn(SHOW_PARTS, process.argv[3] ?? '')
      ? [process.argv[3]!]
      : Object.keys(SHOW_PARTS);
    for (const part of parts) await SHOW_PARTS[part]!(show);
  },
};

// without a command it is `run`, or a person wants to see them all
const command = argumentsOf(process.argv)[0] ?? '';
const wanted = Object.hasOwn(COMMANDS, command) ? [command] : Object.keys(COMMANDS);
const isNone = !Object.hasOwn(COMMANDS, command) && !/^(-.*|help)?$/s.test(command);
await runProgram(program, async () => {
  if (isNone) throw new Error(`"${command}" is not a command: everyframe --help lists them`);
  for (const name of wanted) await COMMANDS[name]!();
});
