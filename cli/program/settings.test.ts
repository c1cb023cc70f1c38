import { Command, Option } from 'commander';
import { expect, it } from 'vitest';
import { withChoices } from './settings.ts';

const read = (text: string): unknown =>
  new Command()
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .addOption(withChoices(new Option('--by <WHAT>'), ['function', 'line', 'library', 'process']))
    .parse(['--by', text], { from: 'user' })
    .opts()['by'];

it.each([
  ['function', 'function'],
  ['func', 'function'],
  ['functions', 'function'],
  ['processes', 'process'],
  ['lib', 'library'],
])('takes %s for %s', (text, choice) => {
  expect(read(text)).toBe(choice);
});

it.each(['', 'l', 'li', 'xyzzy'])('does not guess what "%s" is', (text) => {
  expect(() => read(text)).toThrow('Allowed choices are function, line, library, process');
});
