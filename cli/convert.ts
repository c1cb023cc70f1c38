import type { Command } from 'commander';
import { readableEndings } from '../common/profile/formats.ts';
import { mergeProfiles } from '../common/profile/merge.ts';
import type { Profile } from '../common/profile/profile.ts';
import { addExamples } from './examples.ts';
import {
  addReadFlags,
  addWriteFlags,
  checkOutput,
  ensureHeap,
  loadProfile,
  OUTPUT_HELP,
  type ReadFlags,
  saveProfile,
  type WriteFlags,
} from './profile-files.ts';

export function registerConvert(program: Command): void {
  const command = program
    .command('convert')
    .description('write a profile in another format; several become one')
    .argument('<IN...>', `${readableEndings()}, packed with gzip or not; - is standard input`)
    .requiredOption('-o, --output <OUT>', OUTPUT_HELP)
    .action(convert);
  addExamples(addWriteFlags(addReadFlags(command)), [
    ['everyframe convert profile.pb.gz -o profile.html', 'a page that opens without a network'],
    ['perf script | everyframe convert - --from perf-script -o perf.pb.gz', 'what perf recorded, as pprof'],
    ['everyframe convert a.otlp b.otlp -o both.speedscope.json', 'two recordings as one'],
  ]);
}

async function convert(inputs: string[], flags: ReadFlags & WriteFlags): Promise<void> {
  ensureHeap(flags);
  checkOutput(flags, inputs);
  const profiles: Profile[] = [];
  for (const input of inputs) profiles.push(await loadProfile(input, flags));
  // what is read is merged already
  await saveProfile(flags, profiles.length === 1 ? profiles[0]! : mergeProfiles(profiles));
}
