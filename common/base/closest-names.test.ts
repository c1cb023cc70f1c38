import { expect, it } from 'vitest';
import { closestNames } from './closest-names.ts';

const NAMES = [
  'Main.countWords',
  'java.util.HashMap.get',
  'compute_primes',
  'std::vector<int>::push_back(int)',
  'main',
];

it.each([
  ['countWords', 'Main.countWords'],
  ['main.countwords', 'Main.countWords'],
  ['compute_prime', 'compute_primes'],
  ['coumpte_primes', 'compute_primes'],
  ['mian', 'main'],
  ['push_bakc', 'std::vector<int>::push_back(int)'],
])('%s may be meant to be %s', (wanted, name) => {
  expect(closestNames(wanted, NAMES)[0]).toBe(name);
});

it('suggests nothing where nothing is near', () => {
  expect(closestNames('zzzzzzzz', NAMES)).toEqual([]);
});
