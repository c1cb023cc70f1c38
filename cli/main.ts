#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { registerAgent } from './agent.ts';
import { AGENT_FLAG_NAMES, normaliseDashes } from './agent-flags.ts';
import { registerCollector } from './collector.ts';
import { registerConvert } from './convert.ts';
import { registerDiff } from './diff.ts';
import { registerDoctor } from './doctor.ts';
import { registerMcp } from './mcp.ts';
import { probeSampler } from './probe-sampler.ts';
import { registerQuery } from './query.ts';
import { registerRecord } from './record.ts';
import { registerReport } from './report.ts';
import { registerRun } from './run.ts';
import { registerShowObject } from './show-object.ts';
import { registerShowStackDeltas } from './show-stack-deltas.ts';
import { registerShowSymbol } from './show-symbol.ts';
import { registerTop } from './top.ts';

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
registerRun(program);
registerAgent(program);
registerCollector(program);
registerRecord(program);
registerReport(program);
registerConvert(program);
registerDiff(program);
registerTop(program);
registerQuery(program);
registerMcp(program);
registerDoctor(program, [probeSampler]);
const show = program.command('show').description("print what the product makes of a machine's parts");
registerShowStackDeltas(show);
registerShowSymbol(show);
registerShowObject(show);

try {
  await program.parseAsync(normaliseDashes(process.argv.slice(2), AGENT_FLAG_NAMES), { from: 'user' });
} catch (error) {
  console.error(`everyframe: ${(error as Error).message}`);
  // whatever was started before it failed does not keep the process alive
  process.exit(1);
}
