/**
 * Whole stacks whatever built the program: a few of each kind; with TOOLCHAINS=all each, which writes
 * docs/toolchains.md (`npm run test:toolchains`); with another TOOLCHAINS those whose titles match it, which
 * renews their rows.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { hasToolchain } from './go-releases.ts';
import { type KnownProgram, type Outcome, observe } from './known-stacks.ts';
import { ALL_PROGRAMS, SAMPLE_PROGRAMS } from './programs.ts';
import { describeToolchains, WHOLE_SHARE } from './summary.ts';

const SUMMARY = join(import.meta.dirname, '../../docs/toolchains.md');
const pattern = process.env['TOOLCHAINS'];
const matches = new RegExp(pattern === 'all' ? '' : (pattern ?? ''));
const wanted =
  pattern === undefined ? SAMPLE_PROGRAMS : ALL_PROGRAMS.filter(({ title }) => matches.test(title));
const missing = [...new Set(wanted.flatMap(({ tools }) => tools))].filter((tool) => !hasToolchain(tool));
const programs = wanted.filter(({ tools }) => !tools.some((tool) => missing.includes(tool)));
for (const tool of missing) console.log(`skipped: ${tool} is not installed`);

const explain = ({ samples, others }: Outcome): string =>
  `${samples} samples; not whole: ${JSON.stringify(others)}`;

describe.skipIf(missingRights)('whole stacks of programs by', () => {
  let outcomes = new Map<KnownProgram, Outcome>();
  beforeAll(async () => {
    outcomes = await observe(programs);
    if (pattern !== undefined)
      writeFileSync(SUMMARY, describeToolchains(readFileSync(SUMMARY, 'utf8'), ALL_PROGRAMS, outcomes));
  }, 1_800_000);

  it.each(programs)('$title', (program) => {
    const outcome = outcomes.get(program)!;
    expect(outcome.wholeShare, explain(outcome)).toBeGreaterThanOrEqual(WHOLE_SHARE);
  });
});
