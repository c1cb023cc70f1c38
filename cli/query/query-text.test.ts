import { expect, it } from 'vitest';
import { diffText, topText, treeText, typesText } from './query-text.ts';

const BASIS = { fromMs: 0, toMs: 60_000, samples: 8, allSamples: 10, cpuNanos: 4e8 };

it('says how much a list stands on, and what it leaves out', () => {
  const functions = [{ name: 'render', mapping: '/usr/bin/node', self: 6, total: 8 }];
  expect(topText({ ...BASIS, functionCount: 3, functions })).toEqual([
    '8 of 10 samples, 0.4 s of CPU, 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z',
    '  self  total  function',
    ' 75.0% 100.0%  render  node',
    '… 2 more functions: raise --limit to see them',
  ]);
});

it('says why a list is empty though there are samples', () => {
  expect(topText({ ...BASIS, functionCount: 0, functions: [] }).at(-1)).toMatch(
    /^no function is left: --transform/,
  );
  expect(topText({ ...BASIS, samples: 0, functionCount: 0, functions: [] })).toHaveLength(2);
});

const TREE = {
  strings: ['all', 'a', 'b', 'c'],
  frames: { name: [0, 1, 2, 3] },
  nodes: { parent: [0, 0, 0, 1], frame: [0, 1, 2, 3], self: [0, 1, 2, 5] },
};

it('keeps to its lines: the largest branches, parents first', () => {
  expect(treeText({ ...BASIS, ...TREE }, 2)).toEqual([
    expect.stringMatching(/^8 of 10 samples, 0.4 s of CPU/),
    '  total  self',
    ' 75.0%  12.5%  a',
    ' 62.5%  62.5%   c',
    '… 1 more boxes, smaller ones: raise --limit to see them',
  ]);
});

it('says what the shares of a tree are of, where a transform left stacks out', () => {
  const waits = { name: 'off_cpu', type: 'off_cpu', unit: 'nanoseconds', kind: 'rate' } as const;
  const nodes = { ...TREE.nodes, self: TREE.nodes.self.map((seconds) => seconds * 1e9) };
  const answer = { ...BASIS, ...TREE, nodes, type: waits, samples: 32e9, allSamples: 122e9 };
  expect(treeText(answer, 1).slice(0, 4)).toEqual([
    '32 s of 2 min 2 s of waiting, 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z',
    'shown: 8 s of waiting, 25.0% of those above; shares below are of what is shown',
    '  total  self',
    ' 75.0%  12.5%  a',
  ]);
});

it('shows changes in points, with both shares', () => {
  const row = {
    name: 'parse',
    mapping: '',
    self: 2,
    total: 2,
    baseSelf: 6,
    baseTotal: 6,
    selfShareChange: -0.5,
  };
  expect(diffText({ base: BASIS, now: BASIS, functionCount: 1, functions: [row] }).at(-1)).toBe(
    ' -50.0  75.0%  25.0%  parse',
  );
});

it('says which changes may be chance', () => {
  const row = { name: 'parse', mapping: '', self: 3, total: 3, baseSelf: 2, baseTotal: 2 };
  const functions = [{ ...row, selfShareChange: 0.125 }];
  expect(diffText({ base: BASIS, now: BASIS, functionCount: 1, functions }).slice(-2)).toEqual([
    ' +12.5~ 25.0%  37.5%  parse',
    '~ so few samples differ by as much without any change, in one of twenty cases',
  ]);
});

it('says whether nothing came, or nothing matches', () => {
  const nothing = { ...BASIS, samples: 0, functionCount: 0, functions: [] };
  expect(topText(nothing)[0]).toMatch(/nothing matches the filter; everyframe query labels/);
  expect(topText({ ...nothing, allSamples: 0 })[0]).toMatch(/no samples, look at everyframe query health/);
});

it('says of types what was asked for', () => {
  expect(typesText({ types: [] }, 'process=x')).toEqual(['no samples of this time match process=x']);
  expect(typesText({ types: [] })).toEqual(['no samples in this time']);
});
