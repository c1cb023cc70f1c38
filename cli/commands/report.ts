import { type Command, InvalidArgumentError, Option } from 'commander';
import { compilePattern, type Pattern } from '../../common/profile/filters/pattern.ts';
import { readableEndings } from '../../common/profile/formats/formats.ts';
import { describeApproximateLines } from '../../common/profile/model/approximate-lines.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import { typeName } from '../../common/profile/model/profile-type.ts';
import { valueFormatter } from '../../common/profile/model/value-format.ts';
import {
  BYS,
  type By,
  formatReport,
  SORTS,
  type Sort,
  totalOf,
} from '../../common/profile/text/inclusive-shares.ts';
import { reportJson, type Selection, select } from '../../common/profile/text/report-data.ts';
import { DEFAULT_MIN_SHARE } from '../../common/profile/text/report-text.ts';
import { printText } from '../output/output-file.ts';
import { addReadFlags, ensureHeap, loadOneType, nameOf, type ReadFlags } from '../output/profile-files.ts';
import { addExamples } from '../program/examples.ts';
import { withChoices } from '../program/settings.ts';

const JSON_ROWS = 50;
export const SHORT_NAMES = 'C++ functions without their parameters and template arguments';

interface ReportFlags extends Selection, ReadFlags {
  by: By;
  sort?: Sort;
  top?: number;
  minShare?: number;
  json?: boolean;
}

export const parseTop = (text: string): number => {
  const top = Number(text);
  if (!Number.isInteger(top) || top < 1) throw new InvalidArgumentError('give a whole number from 1 on.');
  return top;
};

/** `5` and `5%` are a twentieth of all samples. */
export const parsePercent = (text: string): number => {
  const percent = Number(text.replace(/%$/, ''));
  if (!(percent >= 0 && percent <= 100) || text.trim() === '')
    throw new InvalidArgumentError('give a percentage of all samples, 0 to 100.');
  return percent / 100;
};

const parsePattern = (text: string): Pattern => {
  try {
    return compilePattern(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
};

/** What `report` and `diff` select and sort by. */
export const addSelectionFlags = (command: Command, by: By): Command =>
  addReadFlags(
    command
      .addOption(withChoices(new Option('--by <WHAT>', 'what a line stands for'), BYS).default(by))
      .option('--focus <REGEX>', 'only samples with such a function on the stack', parsePattern)
      .option('--ignore <REGEX>', 'without samples that have such a function on the stack', parsePattern)
      .option('--my-code', 'hide frames of the kernel, of libraries and of installed programs')
      .option('--short-names', SHORT_NAMES),
  );

export function registerReport(program: Command): void {
  const command = program
    .command('report')
    .description(
      'print a profile: the share of samples that functions, stacks, … took themselves, and with what they call',
    )
    .argument('<FILE>', `${readableEndings()}, packed with gzip or not; - is standard input`);
  addSelectionFlags(command, 'stack')
    .addOption(
      withChoices(
        new Option('--sort <WHAT>', 'one table in this order (default: one by self and one by total)'),
        SORTS,
      ),
    )
    .option('--limit, --top <N>', `only the first N lines (with --json: ${JSON_ROWS})`, parseTop)
    .option(
      '--min-share <PERCENT>',
      `sum up what has a smaller share of the samples (default: ${DEFAULT_MIN_SHARE * 100}%)`,
      parsePercent,
    )
    .option('--json', 'print {"schema":"everyframe.report/1",…}')
    .action(report);
  addExamples(command, [
    ['everyframe report profile.pb.gz', 'all stacks as a tree, largest branches first'],
    ['everyframe report profile.pb.gz --by function --top 20', 'the functions that take the time'],
    ['perf script | everyframe report - --by library', 'what perf recorded, by library'],
    ['everyframe report heap.pb.gz --type alloc_space', 'where a Go program allocated, by bytes'],
  ]);
}

async function report(file: string, flags: ReportFlags): Promise<void> {
  ensureHeap(flags);
  const { by, sort, top, minShare } = flags;
  const profile = await loadOneType(file, flags);
  const selected = select(profile, flags);
  if (selected.samples.length === 0) tellEmpty(file, profile, flags);
  if (flags.json) {
    const json = reportJson(profile, selected, { by, sort, top: top ?? JSON_ROWS });
    await printText([`${JSON.stringify(json)}\n`]);
    return;
  }
  const cut = { top, minShare, fileTotal: totalOf(profile) };
  await printText(formatReport(selected, { by, sort, ...cut }));
  const notes = [describeApproximateLines(selected)];
  const foreign = flags.myCode ? countBare(selected) : 0;
  if (foreign > 0)
    notes.push(
      `${valueFormatter(profile.type.sampleType).of(foreign)} have no frame of your own code: they count in the total and are in no line`,
    );
  for (const note of notes) if (note !== '') process.stderr.write(`everyframe: ${note}\n`);
}

/** Why there is nothing to print. */
function tellEmpty(file: string, profile: Profile, { focus, ignore }: Selection): void {
  const all = totalOf(profile);
  const flags = [focus && '--focus', ignore && '--ignore'].filter(Boolean).join(' and ');
  const why =
    all === 0
      ? `${nameOf(file)} has no samples of ${typeName(profile.type)}: there were none while it was recorded`
      : `of ${valueFormatter(profile.type.sampleType).of(all)} in ${nameOf(file)}, none is left by ${flags}`;
  process.stderr.write(`everyframe: ${why}\n`);
}

const countBare = ({ samples, stacks }: Profile): number =>
  samples.reduce((sum, { stack, value }) => sum + (stacks[stack]!.length === 0 ? value : 0), 0);
