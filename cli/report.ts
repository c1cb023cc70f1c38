import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { readableEndings, readProfile } from '../common/profile/formats.ts';
import { type By, formatReport } from '../common/profile/residency.ts';

const parseTop = (text: string): number => {
  const top = Number(text);
  if (!Number.isInteger(top) || top < 1) throw new InvalidArgumentError('give a whole number from 1 on.');
  return top;
};

export function registerReport(program: Command): void {
  program
    .command('report')
    .description('print a profile: in which share of the samples each stack, function or process was there')
    .argument('<FILE>', readableEndings())
    .addOption(
      new Option('--by <WHAT>', 'a line a').choices(['stack', 'function', 'process']).default('stack'),
    )
    .option('--top <N>', 'only the first N lines', parseTop)
    .action((file: string, options: { by: By; top?: number }) => {
      const profile = readProfile(file, readFileSync(file));
      process.stdout.write(formatReport(profile, options.by, options.top));
    });
}
