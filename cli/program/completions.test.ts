import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { wholeProgram } from '../commands/all-commands.ts';
import { shapeOf } from './command-shape.ts';
import { completionFor, SHELLS } from './completions.ts';

const shape = shapeOf(await wholeProgram());
function isMissing(shell: string): boolean {
  const isThere = spawnSync(shell, ['--version']).error === undefined;
  if (!isThere) console.warn(`skipped: ${shell} is not installed`);
  return !isThere;
}

/** What bash would offer for a line whose last word is being typed. */
function offeredByBash(...words: string[]): string[] {
  const line = ['everyframe', ...words].map((word) => `'${word}'`).join(' ');
  const script = `${completionFor('bash', shape)}
compopt() { :; }
COMP_WORDS=(${line}); COMP_CWORD=${words.length}
_everyframe; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n');
}

describe('bash', () => {
  it('offers commands, their flags, and the words that a flag takes', () => {
    expect(offeredByBash('co')).toEqual(['collector', 'convert', 'config', 'completion']);
    expect(offeredByBash('config', '')).toEqual(expect.arrayContaining(['check', 'print']));
    expect(offeredByBash('agent', '--samples')).toEqual(['--samples-per-second']);
    expect(offeredByBash('agent', '--verbose', '--comp')).toEqual(['--compression']);
    expect(offeredByBash('agent', '--compression', '')).toEqual(['auto', 'gzip', 'none']);
    expect(offeredByBash('agent', '--collection-agent', 'collector', '--once')).toEqual(['--once']);
    expect(offeredByBash('collector', 'import', '--')).toContain('--help');
    expect(offeredByBash('record', '--', '--')).toEqual(['']);
    expect(offeredByBash('report', '--lim')).toEqual(['--limit']);
    expect(offeredByBash('query', 'top', '--top')).toEqual(['--top']);
  });
});

it.skipIf(isMissing('fish'))('fish offers commands, flags and words', () => {
  const offered = (line: string): string[] => {
    const script = `${completionFor('fish', shape)}\ncomplete -C '${line}'`;
    const text = execFileSync('fish', ['--no-config', '-c', script], { encoding: 'utf8' });
    return text
      .trim()
      .split('\n')
      .map((each) => each.split('\t')[0]!);
  };
  expect(offered('everyframe conf')).toContain('config');
  expect(offered('everyframe config ')).toEqual(expect.arrayContaining(['check', 'print']));
  expect(offered('everyframe agent --samples')).toContain('--samples-per-second');
  expect(offered('everyframe agent --compression ')).toEqual(['auto', 'gzip', 'none']);
  expect(offered('everyframe report --lim')).toEqual(['--limit']);
});

it.skipIf(isMissing('zsh'))('zsh reads its functions', () => {
  const script = completionFor('zsh', shape);
  execFileSync('zsh', ['-n'], { input: script });
  const said = spawnSync('zsh', ['-fc', `autoload -Uz compinit; compinit -D; ${script}`], {
    encoding: 'utf8',
  });
  expect(said.stderr).toBe('');
  expect(said.status).toBe(0);
});

it.each(SHELLS)('%s: every command and every flag that help shows is in it', (shell) => {
  const text = completionFor(shell, shape);
  const flat = (one: typeof shape): (typeof shape)[] => [one, ...one.commands.flatMap(flat)];
  for (const { path, options } of flat(shape)) {
    expect(text).toContain(path.at(-1));
    for (const { long } of options) expect(text).toContain(shell === 'fish' ? `-l ${long?.slice(2)} ` : long);
  }
});
