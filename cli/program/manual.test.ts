import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { wholeProgram } from '../commands/all-commands.ts';
import { shapeOf } from './command-shape.ts';
import { examplesIn } from './examples.ts';
import { manualPages } from './manual.ts';

const program = await wholeProgram();
const pages = manualPages(shapeOf(program), { version: '0.1.0', date: '2026-11-27' }, (path) =>
  examplesIn(program, path),
);
const isMissing = spawnSync('man', ['--version']).error !== undefined;
if (isMissing) console.warn('skipped: man is not installed');

it('there is a page for each command, below its whole name', () => {
  const names = pages.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['everyframe.1', 'everyframe-agent.1', 'everyframe-config-check.1']),
  );
});

it.skipIf(isMissing).each(pages.map((page) => [page.name, page.text]))('man formats %s', (_name, text) => {
  const said = spawnSync('man', ['--warnings', '-l', '-'], {
    input: text,
    encoding: 'utf8',
    env: { ...process.env, MANWIDTH: '80', LC_ALL: 'C.UTF-8' },
  });
  expect(said.stderr).toBe('');
  expect(said.stdout).toContain('SYNOPSIS');
});

it('has flags as they are typed, and the examples of the help', () => {
  const { text } = pages.find(({ name }) => name === 'everyframe-agent.1')!;
  expect(text).toContain('\\fB\\-\\-samples\\-per\\-second\\fR \\fIHZ\\fR');
  expect(text).toMatch(/\.SH EXAMPLES\n\.TP\n\\fBeveryframe agent/);
});
