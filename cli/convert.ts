import { readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import {
  checkFormat,
  readableEndings,
  readProfile,
  writableEndings,
  writeProfile,
} from '../common/profile/formats.ts';
import { mergeProfiles } from '../common/profile/merge.ts';

export function registerConvert(program: Command): void {
  program
    .command('convert')
    .description('write a profile in another format; several become one')
    .argument('<IN...>', readableEndings())
    .requiredOption('-o, --output <OUT>', `its ending is the format: ${writableEndings()}`)
    .action((inputs: string[], { output }: { output: string }) => {
      checkFormat(output);
      const profiles = inputs.map((file) => readProfile(file, readFileSync(file)));
      writeFileSync(output, writeProfile(output, mergeProfiles(profiles)));
    });
}
