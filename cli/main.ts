#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { AGENT_FLAG_NAMES, normaliseDashes } from './agent-flags.ts';

// `everyframe show … | head` ends when head has seen enough
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
const program = new Command('everyframe')
  .description(
    'Every frame of every process on this machine, as a flame graph and as OpenTelemetry profiles.',
  )
  .version(version)
  .enablePositionalOptions()
  .showHelpAfterError('(--help lists the flags)');
/** The parts that `show` prints, in the order of its help. */
const SHOW_PARTS: Record<string, (show: Command) => Promise<void>> = {
  'stack-deltas': async (show) => (await import('./show-stack-deltas.ts')).registerShowStackDeltas(show),
  symbol: async (show) => (await import('./show-symbol.ts')).registerShowSymbol(show),
  object: async (show) => (await import('./show-object.ts')).registerShowObject(show),
  programs: async (show) => (await import('./show-programs.ts')).registerShowPrograms(show),
};
/** What a command needs is loaded with it: all of it together takes longer than naming an address. */
const COMMANDS: Record<string, () => Promise<void>> = {
  run: async () => (await import('./run.ts')).registerRun(program),
  agent: async () => (await import('./agent.ts')).registerAgent(program),
  collector: async () => (await import('./collector.ts')).registerCollector(program),
  record: async () => (await import('./record.ts')).registerRecord(program),
  report: async () => (await import('./report.ts')).registerReport(program),
  convert: async () => (await import('./convert.ts')).registerConvert(program),
  diff: async () => (await import('./diff.ts')).registerDiff(program),
  top: async () => (await import('./top.ts')).registerTop(program),
  query: async () => (await import('./query.ts')).registerQuery(program),
  mcp: async () => (await import('./mcp.ts')).registerMcp(program),
  doctor: async () => {
    const { probeSampler } = await import('./probe-sampler.ts');
    (await import('./doctor.ts')).registerDoctor(program, [probeSampler]);
  },
  show: async () => {
    const show = program.command('show').description("print what the product makes of a machine's parts");
    const parts = Object.hasOwn(SHOW_PARTS, process.argv[3] ?? '')
      ? [process.argv[3]!]
      : Object.keys(SHOW_PARTS);
    for (const part of parts) await SHOW_PARTS[part]!(show);
  },
};

// without a command it is `run`, or a person wants to see them all
const command = process.argv[2] ?? '';
const wanted = Object.hasOwn(COMMANDS, command) ? [command] : Object.keys(COMMANDS);
try {
  for (const name of wanted) await COMMANDS[name]!();
  await program.parseAsync(normaliseDashes(process.argv.slice(2), AGENT_FLAG_NAMES), { from: 'user' });
} catch (error) {
  console.error(`everyframe: ${(error as Error).message}`);
  // whatever was started before it failed does not keep the process alive
  process.exit(1);
}
