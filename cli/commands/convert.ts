import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { readableEndings } from '../../common/profile/formats/formats.ts';
import { mergeSets } from '../../common/profile/model/merge.ts';
import type { ProfileSet } from '../../common/profile/model/profile.ts';
import { typeName, valueKind } from '../../common/profile/model/profile-type.ts';
import {
  addReadFlags,
  addWriteFlags,
  checkOutput,
  droppedTypes,
  ensureHeap,
  loadProfiles,
  OUTPUT_HELP,
  onlyType,
  type ReadFlags,
  saveProfiles,
  type WriteFlags,
} from '../output/profile-files.ts';
import { addExamples } from '../program/examples.ts';

export function registerConvert(program: Command): void {
  const command = program
    .command('convert')
    .description('write a profile in another format; several become one')
    .argument('<IN...>', `${readableEndings()}, packed with gzip or not; - is standard input`)
    .option('-o, --output <OUT>', OUTPUT_HELP)
    .action(convert);
  addExamples(addWriteFlags(addReadFlags(command)), [
    ['everyframe convert profile.pb.gz -o profile.html', 'a page that opens without a network'],
    ['perf script | everyframe convert - --from perf-script -o perf.pb.gz', 'what perf recorded, as pprof'],
    ['everyframe convert a.otlp b.otlp -o both.speedscope.json', 'two recordings as one'],
    ['everyframe convert heap.pb.gz --type inuse_space -o heap.html', 'one type of those that a file has'],
  ]);
}

/** An output that was written as if it were the last input. */
function requireOutput(inputs: readonly string[], { output }: Partial<WriteFlags>): void {
  if (output !== undefined) return;
  const last = inputs.at(-1)!;
  const isMeant = inputs.length > 1 && !existsSync(last);
  const example = [...(isMeant ? inputs.slice(0, -1) : inputs), '-o', isMeant ? last : 'profile.html'];
  throw new Error(`-o OUT is missing: where to write, as in everyframe convert ${example.join(' ')}`);
}

async function convert(inputs: string[], flags: ReadFlags & WriteFlags): Promise<void> {
  requireOutput(inputs, flags);
  ensureHeap(flags);
  checkOutput(flags, inputs);
  const sets: ProfileSet[] = [];
  for (const input of inputs) {
    const file = await loadProfiles(input, flags);
    sets.push(flags.type === undefined ? file : onlyType(file, flags.type));
  }
  // what is read is merged already
  const output = sets.length === 1 ? sets[0]! : mergeSets(sets);
  await saveProfiles(flags, output);
  for (const note of stateNotes(sets)) process.stderr.write(`everyframe: ${note}\n`);
  const left = droppedTypes(flags, output);
  if (left !== '') process.stderr.write(`everyframe: ${left}\n`);
}

/** Of types that are not a sum over time, and are in several of the files. */
function stateNotes(sets: readonly ProfileSet[]): string[] {
  const types = sets.flatMap(({ profiles }) => profiles.map(({ type }) => type));
  const names = types.filter((type) => valueKind(type) === 'level').map(typeName);
  const repeated = new Set(names.filter((name, i) => names.indexOf(name) !== i));
  return [...repeated].map(
    (name) => `${name} is a state: of a process that several files have, the latest is kept`,
  );
}
