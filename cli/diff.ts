import { type Command, InvalidArgumentError } from 'commander';
import { readableEndings } from '../common/profile/formats.ts';
import { diffProfiles, formatDiff, type Selection, select } from '../common/profile/report-data.ts';
import type { By } from '../common/profile/residency.ts';
import { loadProfile } from './profile-files.ts';
import { byOption, parsePattern, parseTop, SHORT_NAMES } from './report.ts';

/** Exit code where something grew by what `--fail-on` says; errors exit with 1. */
const REGRESSED = 3;

interface DiffFlags extends Selection {
  by: By;
  threshold?: number;
  failOn?: number;
  top: number;
  json?: boolean;
}

/** `5` and `5%` are a twentieth of all samples. */
const parsePercent = (text: string): number => {
  const percent = Number(text.replace(/%$/, ''));
  if (!(percent >= 0 && percent <= 100) || text.trim() === '')
    throw new InvalidArgumentError('give a percentage of all samples, 0 to 100.');
  return percent / 100;
};

export function registerDiff(program: Command): void {
  program
    .command('diff')
    .description('compare two profiles of any formats, by the share of their samples')
    .argument('<BEFORE>', readableEndings())
    .argument('<AFTER>', 'the same, or another of them')
    .addOption(byOption('function'))
    .option('--threshold <PERCENT>', 'leave out smaller changes (default: 0.5)', parsePercent)
    .option('--fail-on <PERCENT>', `exit with ${REGRESSED} if a share grew by this much`, parsePercent)
    .option('--top <N>', 'only the first N lines', parseTop, 40)
    .option('--focus <REGEX>', 'only samples with such a function on the stack', parsePattern)
    .option('--ignore <REGEX>', 'without samples that have such a function on the stack', parsePattern)
    .option('--my-code', 'hide frames of the kernel, of libraries and of installed programs')
    .option('--short-names', SHORT_NAMES)
    .option('--json', 'print {"schema":"everyframe.diff/1",…}')
    .action((before: string, after: string, { failOn, threshold = 0.005, ...flags }: DiffFlags) => {
      const [a, b] = [before, after].map((file) => select(loadProfile(file), flags));
      const result = diffProfiles(a!, b!, { ...flags, failOn, threshold });
      if (failOn !== undefined) {
        refuseEmpty(before, result.samples.before, flags);
        refuseEmpty(after, result.samples.after, flags);
      }
      process.stdout.write(flags.json ? `${JSON.stringify(result)}\n` : formatDiff(result));
      if (result.regressions > 0) process.exitCode = REGRESSED;
    });
}

/** A gate that compares with nothing would pass whatever happened. */
function refuseEmpty(file: string, samples: number, { focus, ignore }: Selection): void {
  if (samples > 0) return;
  const selected = focus || ignore ? ' that --focus and --ignore leave' : '';
  throw new Error(`${file} has no samples${selected}: --fail-on can tell nothing of it`);
}
