import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { readProfile } from '../common/profile/formats.ts';
import { processName, stackNames } from '../common/profile/frame-name.ts';
import type { Profile } from '../common/profile/profile.ts';

type By = 'stack' | 'function' | 'process';

const parseTop = (text: string): number => {
  const top = Number(text);
  if (!Number.isInteger(top) || top < 1) throw new InvalidArgumentError('give a whole number from 1 on.');
  return top;
};

export function registerReport(program: Command): void {
  program
    .command('report')
    .description('print a profile: in which share of the samples each stack, function or process was there')
    .argument('<FILE>', '.pb.gz, .folded or .otlp')
    .addOption(
      new Option('--by <WHAT>', 'a line a').choices(['stack', 'function', 'process']).default('stack'),
    )
    .option('--top <N>', 'only the first N lines', parseTop)
    .action((file: string, options: { by: By; top?: number }) => {
      const profile = readProfile(file, readFileSync(file));
      process.stdout.write(formatReport(profile, options.by, options.top));
    });
}

/** A first line with the total, then `80% main();foo();bar()`, the largest share first. */
export function formatReport(profile: Profile, by: By, top = Number.POSITIVE_INFINITY): string {
  const total = profile.samples.reduce((sum, sample) => sum + sample.count, 0);
  const residency = countResidency(profile, by);
  const rows = [...residency].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).slice(0, top);
  const lines = rows.map(([name, count]) => `${formatShare(count / total)} ${name}\n`);
  return `${total} samples, ${residency.size} ${by === 'process' ? 'processes' : `${by}s`}\n${lines.join('')}`;
}

/** Samples in which each stack (with whatever it called), function or process was resident. */
function countResidency(profile: Profile, by: By): Map<string, number> {
  const counts = new Map<string, number>();
  const add = (name: string, count: number): void => void counts.set(name, (counts.get(name) ?? 0) + count);
  for (const sample of profile.samples) {
    if (by === 'process') {
      add(processName(profile, sample.process), sample.count);
      continue;
    }
    const names = stackNames(profile, sample.stack, (name) => call(name));
    if (by === 'function') {
      for (const name of new Set(names)) add(name, sample.count);
      continue;
    }
    let stack = '';
    for (const name of names) {
      stack = stack === '' ? name : `${stack};${name}`;
      add(stack, sample.count);
    }
  }
  return counts;
}

/** Functions read as calls; addresses and markers stay as they are. */
const call = (name: string): string => (/[()[\]+]/.test(name) ? name : `${name}()`);

/** Two digits that matter: `80%`, `12.5%`, `0.04%`. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent >= 99.95 || percent === 0) return `${Math.round(percent)}%`;
  const digits = percent >= 1 ? 1 : Math.min(4, 1 - Math.floor(Math.log10(percent)));
  return `${Number(percent.toFixed(digits))}%`;
}
