import { type Command, InvalidArgumentError, Option } from 'commander';
import { readableEndings } from '../common/profile/formats.ts';
import { compilePattern, type Pattern } from '../common/profile/pattern.ts';
import type { Profile } from '../common/profile/profile.ts';
import { reportJson, type Selection, select } from '../common/profile/report-data.ts';
import { type By, countSamples, formatReport } from '../common/profile/residency.ts';
import { loadProfile } from './profile-files.ts';

const JSON_ROWS = 50;
export const SHORT_NAMES = 'C++ functions without their parameters and template arguments';

interface ReportFlags extends Selection {
  by: By;
  top?: number;
  json?: boolean;
}

export const parseTop = (text: string): number => {
  const top = Number(text);
  if (!Number.isInteger(top) || top < 1) throw new InvalidArgumentError('give a whole number from 1 on.');
  return top;
};

export const parsePattern = (text: string): Pattern => {
  try {
    return compilePattern(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
};

export const byOption = (fallback: By): Option =>
  new Option('--by <WHAT>', 'a line a').choices(['stack', 'function', 'process']).default(fallback);

export function registerReport(program: Command): void {
  program
    .command('report')
    .description('print a profile: in which share of the samples each stack, function or process was there')
    .argument('<FILE>', readableEndings())
    .addOption(byOption('stack'))
    .option('--top <N>', `only the first N lines (with --json: ${JSON_ROWS})`, parseTop)
    .option('--focus <REGEX>', 'only samples with such a function on the stack', parsePattern)
    .option('--ignore <REGEX>', 'without samples that have such a function on the stack', parsePattern)
    .option('--my-code', 'hide frames of the kernel, of libraries and of installed programs')
    .option('--short-names', SHORT_NAMES)
    .option('--json', 'print {"schema":"everyframe.report/1",…}')
    .action((file: string, flags: ReportFlags) => {
      const profile = loadProfile(file);
      const selected = select(profile, flags);
      const text = flags.json
        ? `${JSON.stringify(reportJson(profile, selected, flags.by, flags.top ?? JSON_ROWS))}\n`
        : formatReport(selected, flags.by, flags.top);
      process.stdout.write(text);
      const all = countSamples(profile);
      if (!flags.json && selected.samples.length < profile.samples.length)
        process.stderr.write(`selected of ${all} samples in the file\n`);
      const foreign = flags.myCode ? countBare(selected) : 0;
      if (!flags.json && foreign > 0)
        process.stderr.write(
          `${foreign} of these samples have no frame of your own code: they count in the total and are in no line\n`,
        );
    });
}

const countBare = ({ samples, stacks }: Profile): number =>
  samples.reduce((sum, { stack, count }) => sum + (stacks[stack]!.length === 0 ? count : 0), 0);
