import type { Command } from 'commander';
import { readableEndings } from '../common/profile/formats.ts';
import { mergeProfiles } from '../common/profile/merge.ts';
import { checkOutput, loadProfile, outputEndings, saveProfile } from './profile-files.ts';

export function registerConvert(program: Command): void {
  program
    .command('convert')
    .description('write a profile in another format; several become one')
    .argument('<IN...>', readableEndings())
    .requiredOption('-o, --output <OUT>', `its ending is the format: ${outputEndings()}`)
    .action((inputs: string[], { output }: { output: string }) => {
      checkOutput(output);
      saveProfile(output, mergeProfiles(inputs.map(loadProfile)));
    });
}
