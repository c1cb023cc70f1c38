import type { Command } from 'commander';
import { RUNTIMES } from '../../agent/runtimes/runtimes.gen.ts';
import { measurePrograms, type ProgramFigures } from '../../agent/tracer/program-figures.ts';
import { THREAD_CONTEXTS } from '../../agent/tracer/sampler-part.ts';
import { addExamples } from '../program/examples.ts';

export function registerShowPrograms(show: Command): void {
  const command = show
    .command('programs')
    .description('load every BPF program into this kernel and print what that cost its verifier')
    .option('--json', 'one JSON object a line: program, verified (instructions walked through), loadMs')
    .action((options: { json?: boolean }) => {
      const figures = measurePrograms([...RUNTIMES, THREAD_CONTEXTS]);
      process.stdout.write(
        options.json ? figures.map((f) => `${JSON.stringify(f)}\n`).join('') : formatText(figures),
      );
    });
  addExamples(command, [
    ['sudo everyframe show programs', 'a table'],
    ['sudo everyframe show programs --json', 'for a script'],
  ]);
}

function formatText(figures: readonly ProgramFigures[]): string {
  const row = (...[program, verified, load]: string[]): string =>
    `${program!.padEnd(16)} ${verified!.padStart(21)} ${load!.padStart(10)}\n`;
  return [
    row('program', 'instructions verified', 'ms'),
    ...figures.map((f) => row(f.program, String(f.verified), f.loadMs.toFixed(1))),
  ].join('');
}
