/** Profiles that Go's own runtime writes, through this product's formats: all types, and what they add up to. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readProfiles, writeProfiles } from '../common/profile/formats/formats.ts';
import { mainOf } from '../common/profile/model/profile.ts';
import { typeName, valueKind } from '../common/profile/model/profile-type.ts';
import { totalOf } from '../common/profile/text/inclusive-shares.ts';
import { compile, hasTool, scratchFolder } from './support/fixtures.ts';

const skipped = hasTool('go') ? '' : 'go is not installed';
if (skipped) console.log(`skipped: ${skipped}`);

const FOLDER = join(scratchFolder, 'written-by-go');
const inFolder = (name: string): string => join(FOLDER, name);

/** The line with the total, as Go's own tool reads it. */
function topOf(file: string, type: string): string {
  const flags = ['tool', 'pprof', '-symbolize=none', '-top', `-sample_index=${type}`, file];
  const text = execFileSync('go', flags, {
    encoding: 'utf8',
    env: { ...process.env, PPROF_TMPDIR: FOLDER },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return /^Showing nodes.*$/m.exec(text)![0];
}

const TYPES: Record<string, string[]> = {
  heap: ['alloc_objects/count', 'alloc_space/bytes', 'inuse_objects/count', 'inuse_space/bytes'],
  mutex: ['contentions/count', 'delay/nanoseconds'],
  block: ['contentions/count', 'delay/nanoseconds'],
  goroutine: ['goroutine/count'],
};
const read = (name: string) => readProfiles(name, readFileSync(inFolder(name)));

describe.skipIf(skipped)("a program's", () => {
  beforeAll(() => {
    mkdirSync(FOLDER, { recursive: true });
    execFileSync(compile('go-profiles', 'go', ['build'], 'profiles.go'), [FOLDER]);
  });

  it.each(Object.keys(TYPES))('%s keeps its types and totals as pprof and over OTLP', (name) => {
    const file = read(`${name}.pb.gz`);
    expect(file.problems.size).toBe(0);
    expect(file.profiles.map(({ type }) => typeName(type))).toEqual(TYPES[name]);
    writeFileSync(inFolder(`${name}.otlp`), writeProfiles('a.otlp', file));
    for (const copy of ['copy.pb.gz', 'copy-of-otlp.pb.gz']) {
      const set = copy === 'copy.pb.gz' ? file : read(`${name}.otlp`);
      writeFileSync(inFolder(copy), writeProfiles(copy, set));
      for (const type of TYPES[name]!.map((one) => one.split('/')[0]!))
        expect(topOf(inFolder(copy), type), `${copy} ${type}`).toBe(topOf(inFolder(`${name}.pb.gz`), type));
    }
  });

  it('heap says what was allocated and what is kept, which is a state', () => {
    const file = read('heap.pb.gz');
    const [, allocated, , kept] = file.profiles.map(totalOf);
    expect(kept).toBeGreaterThan(12 * 2 ** 20);
    expect(allocated! - kept!).toBeGreaterThan(48 * 2 ** 20);
    expect(file.profiles.map(({ type }) => valueKind(type))).toEqual(['rate', 'rate', 'level', 'level']);
    expect(typeName(mainOf(file).type)).toBe('inuse_space/bytes');
  });

  it('mutex says how long was waited', () => {
    const waited = totalOf(mainOf(read('mutex.pb.gz')));
    // twenty turns of 2 ms, for which up to three others wait
    expect(waited).toBeGreaterThan(30e6);
    expect(waited).toBeLessThan(60e9);
  });
});
