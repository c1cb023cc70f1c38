import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, expect, it, vi } from 'vitest';
import { readProfile, readProfiles, writeProfiles } from '../../common/profile/formats/formats.ts';
import { setOf } from '../../common/profile/model/profile.ts';
import { cpuType, NO_PERIOD, typeName } from '../../common/profile/model/profile-type.ts';
import { registerConvert } from './convert.ts';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-convert-'));
afterAll(() => rmSync(folder, { recursive: true }));

const IN_USE = { ...NO_PERIOD, sampleType: { type: 'inuse_space', unit: 'bytes' } };

/** CPU samples every `period` nanoseconds, and bytes in use. */
function write(name: string, period: bigint): string {
  const profile = readProfile('a.folded', Buffer.from('app;main 3\n'));
  const set = setOf([
    { ...profile, type: cpuType(period) },
    { ...profile, type: IN_USE },
  ]);
  const file = join(folder, name);
  writeFileSync(file, writeProfiles(file, set));
  return file;
}

it('takes of several files the type that is asked for, and says nothing of others', async () => {
  const output = join(folder, 'out.otlp');
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const program = new Command();
  registerConvert(program);
  const inputs = [write('a.otlp', 10n), write('b.otlp', 20n)];
  await program.parseAsync(['convert', ...inputs, '--type', 'samples/count', '-o', output], { from: 'user' });
  const { profiles } = readProfiles(output, readFileSync(output));
  // samples of different periods add up as the time that they stand for
  expect(profiles.map(({ type, samples }) => [typeName(type), samples[0]!.value])).toEqual([
    ['cpu/nanoseconds', 90],
  ]);
  expect(stderr).not.toHaveBeenCalled();
  stderr.mockRestore();
});

it('says how an output is written that was given as if it were an input', async () => {
  const input = write('c.otlp', 10n);
  const convert = (...args: string[]): Promise<unknown> => {
    const program = new Command();
    registerConvert(program);
    return program.parseAsync(['convert', ...args], { from: 'user' });
  };
  const output = join(folder, 'c.folded');
  await expect(convert(input, output)).rejects.toThrow(
    `-o OUT is missing: where to write, as in everyframe convert ${input} -o ${output}`,
  );
  await expect(convert(input)).rejects.toThrow(`everyframe convert ${input} -o profile.html`);
});
