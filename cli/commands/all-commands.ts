/** Every command, in the order of the help. What a command needs is loaded with it: all of it together takes long. */
import type { Command } from 'commander';
import { newProgram, newShow } from '../program/program.ts';
import { samplingCommands } from './sampling-commands.ts';

type Registrations = Readonly<Record<string, () => Promise<void>>>;

/** The parts that `show` prints, in the order of its help. */
const SHOW_PARTS: Record<string, (show: Command) => Promise<void>> = {
  'stack-deltas': async (show) => (await import('./show-stack-deltas.ts')).registerShowStackDeltas(show),
  symbol: async (show) => (await import('./show-symbol.ts')).registerShowSymbol(show),
  object: async (show) => (await import('./show-object.ts')).registerShowObject(show),
  programs: async (show) => (await import('./show-programs.ts')).registerShowPrograms(show),
};

/** @param part the one of `show` that is wanted; all of them where it is none */
export const allCommands = (program: Command, part = ''): Registrations => ({
  ...samplingCommands(program),
  collector: async () => (await import('./collector.ts')).registerCollector(program),
  report: async () => (await import('./report.ts')).registerReport(program),
  convert: async () => (await import('./convert.ts')).registerConvert(program),
  view: async () => (await import('./view.ts')).registerView(program),
  diff: async () => (await import('./diff.ts')).registerDiff(program),
  query: async () => (await import('./query.ts')).registerQuery(program),
  mcp: async () => (await import('./mcp.ts')).registerMcp(program),
  doctor: async () => {
    const { probeSampler } = await import('../start/probe-sampler.ts');
    (await import('./doctor.ts')).registerDoctor(program, [probeSampler]);
  },
  'support-bundle': async () => {
    const { probeSampler } = await import('../start/probe-sampler.ts');
    (await import('./support-bundle.ts')).registerSupportBundle(program, [probeSampler]);
  },
  config: async () => (await import('./config.ts')).registerConfig(program),
  completion: async () => (await import('./completion.ts')).registerCompletion(program, wholeProgram),
  show: async () => {
    const show = newShow(program);
    const parts = Object.hasOwn(SHOW_PARTS, part) ? [part] : Object.keys(SHOW_PARTS);
    for (const each of parts) await SHOW_PARTS[each]!(show);
  },
});

export async function wholeProgram(): Promise<Command> {
  const whole = newProgram();
  for (const register of Object.values(allCommands(whole))) await register();
  return whole;
}
