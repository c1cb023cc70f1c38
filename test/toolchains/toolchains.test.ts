/**
 * Whole stacks whatever built the program: a few of each kind, or with TOOLCHAINS=all each, which writes
 * docs/toolchains.md (`npm run test:toolchains`).
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { hasTool, missingRights } from '../support/fixtures.ts';
import { type KnownProgram, type Outcome, observe } from './known-stacks.ts';
import { ALL_PROGRAMS, SAMPLE_PROGRAMS } from './programs.ts';
import { describeToolchains, WHOLE_SHARE } from './summary.ts';

const SUMMARY = join(import.meta.dirname, '../../docs/toolchains.md');
const isAll = process.env['TOOLCHAINS'] === 'all';
const wanted = isAll ? ALL_PROGRAMS : SAMPLE_PROGRAMS;
const missing = [...new Set(wanted.flatMap(({ tools }) => tools))].filter((tool) => !hasTool(tool));
const programs = wanted.filter(({ tools }) => !tools.some((tool) => missing.includes(tool)));
for (const tool of missing) console.log(`skipped: ${tool} is not installed`);

const explain = ({ samples, others }: Outcome): string =>
  `${samples} samples; not whole: ${JSON.stringify(others)}`;

describe.skipIf(missingRights)('whole stacks of programs by', () => {
  let outcomes = new Map<KnownProgram, Outcome>();
  beforeAll(async () => {
    outcomes = await observe(programs);
    if (isAll) writeFileSync(SUMMARY, describeToolchains(wanted, outcomes));
  }, 1_800_000);

  it.each(programs)('$title', (program) => {
    const outcome = outcomes.get(program)!;
    expect(outcome.wholeShare, explain(outcome)).toBeGreaterThanOrEqual(WHOLE_SHARE);
  });
});
