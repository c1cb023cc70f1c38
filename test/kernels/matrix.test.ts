import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { judge } from './matrix.ts';

const OPTIONS = { architecture: 'amd64', programsOnly: false, cpus: 1 } as const;
const base64Lines = gzipSync(Buffer.from(Array.from({ length: 2000 }, (_, i) => i)))
  .toString('base64')
  .match(/.{1,76}/g)!;

function problemsOf(failure: string, profile: string[]): string {
  const sections = new Map([
    ['kernel', ['6.12.1-cloud-amd64', 'CPUs: 1']],
    ['recording', ['attempt 1: exit code 0']],
    ['profile', profile],
  ]);
  return judge({ sections, failure, seconds: 1 }, { ...OPTIONS, known: [] }).problems.join('\n');
}

it('says why a guest ended while it printed the profile', () => {
  const problems = problemsOf('it ended early: SIGKILL', base64Lines.slice(0, 2));
  expect(problems).toContain('it ended early: SIGKILL');
  expect(problems).toContain("the profile of 2 lines can't be read: unexpected end of file");
  expect(problems).toContain('attempt 1: exit code 0');
});

it('quotes what a kernel wrote into the profile', () => {
  const [first = '', ...rest] = base64Lines;
  const message = `${first.slice(0, 30)}[   60.1] sched: delayed=1`;
  expect(problemsOf('', [message, first.slice(30), ...rest])).toMatch(
    /the profile of \d+ lines can't be read: .*, not of it: ".*sched: delayed=1"/,
  );
});

it('calls damaged what is zipped, but no profile', () => {
  expect(problemsOf('', base64Lines)).toContain("can't be read: ");
});
