import { type Command, Option } from 'commander';
import { readableEndings } from '../../common/profile/formats/formats.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import { typeName } from '../../common/profile/model/profile-type.ts';
import { diffProfiles, formatDiff } from '../../common/profile/text/diff-data.ts';
import { type By, SORTS, type Sort } from '../../common/profile/text/inclusive-shares.ts';
import { type Selection, select } from '../../common/profile/text/report-data.ts';
import { printText } from '../output/output-file.ts';
import { ensureHeap, loadOneType, type ReadFlags } from '../output/profile-files.ts';
import { addExamples } from '../program/examples.ts';
import { withChoices } from '../program/settings.ts';
import { addSelectionFlags, parsePercent, parseTop } from './report.ts';

/** Exit code where something grew by what `--fail-on` says; errors exit with 1. */
const REGRESSED = 3;
const DEFAULT_THRESHOLD = 0.005;

interface DiffFlags extends Selection, ReadFlags {
  by: By;
  sort?: Sort;
  threshold?: number;
  failOn?: number;
  top: number;
  json?: boolean;
}

export function registerDiff(program: Command): void {
  const command = program
    .command('diff')
    .description('compare two profiles of any formats, by the share of their samples')
    .argument('<BEFORE>', readableEndings())
    .argument('<AFTER>', 'the same, or another of them');
  addSelectionFlags(command, 'function')
    .addOption(
      withChoices(
        new Option(
          '--sort <WHAT>',
          'order of the lines: by the change of their own share, or with what they call',
        ),
        SORTS,
      ).default('self'),
    )
    .option(
      '--threshold <POINTS>',
      `leave out smaller changes, in points (hundredths of all samples) (default: ${100 * DEFAULT_THRESHOLD})`,
      parsePercent,
    )
    .option('--fail-on <POINTS>', `exit with ${REGRESSED} if a total grew by this many points`, parsePercent)
    .option('--limit, --top <N>', 'only the first N lines', parseTop, 40)
    .option('--json', 'print {"schema":"everyframe.diff/1",…}')
    .action(diff);
  addExamples(command, [
    ['everyframe diff before.pb.gz after.pb.gz', 'functions whose share changed most'],
    [
      'everyframe diff before.pb.gz after.pb.gz --fail-on 5',
      'for CI: exits with 3 where one grew by 5 points',
    ],
  ]);
}

async function diff(before: string, after: string, flags: DiffFlags): Promise<void> {
  ensureHeap(flags);
  const { failOn, threshold = DEFAULT_THRESHOLD } = flags;
  const load = async (file: string): Promise<Profile> => select(await loadOneType(file, flags), flags);
  const [old, now] = [await load(before), await load(after)];
  if (typeName(old.type) !== typeName(now.type))
    throw new Error(
      `${before} is of ${typeName(old.type)} and ${after} of ${typeName(now.type)}: choose a type that both have with --type`,
    );
  const result = diffProfiles(old, now, { ...flags, failOn, threshold });
  if (failOn !== undefined) {
    refuseEmpty(before, result.samples.before, flags);
    refuseEmpty(after, result.samples.after, flags);
  }
  const width = (process.stdout.isTTY && process.stdout.columns) || undefined;
  await printText([flags.json ? `${JSON.stringify(result)}\n` : formatDiff(result, width)]);
  if (result.regressions > 0) process.exitCode = REGRESSED;
}

/** A gate that compares with nothing would pass whatever happened. */
function refuseEmpty(file: string, samples: number, { focus, ignore }: Selection): void {
  if (samples > 0) return;
  const selected = focus || ignore ? ' that --focus and --ignore leave' : '';
  throw new Error(`${file} has no samples${selected}: --fail-on has nothing to compare`);
}
