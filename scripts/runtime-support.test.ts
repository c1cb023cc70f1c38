import { describe, expect, it } from 'vitest';
import {
  fillIn,
  mergeResults,
  resultsOf,
  type TestedBuild,
  type TestReport,
  verifiedVersions,
} from './runtime-support.ts';

const build = (series: string, version: string, runtimeVersion = version): TestedBuild => ({
  runtime: series.startsWith('Node') ? 'v8' : 'cpython',
  series,
  origin: 'Debian sid',
  version,
  runtimeVersion,
});

const report = (...tests: TestReport['testResults'][0]['assertionResults']): TestReport => ({
  testResults: [{ assertionResults: tests }],
});

const NODE_24 = build('Node 24', '24.21.0', '13.6.233');
const SPLIT = { shape: 'hot', rate: 997, samples: 4000, share: 0.301, windows: [0.3, 0.302] };

describe('results of runtime tests', () => {
  it('are gathered by build: what passed, what failed, and the splits', () => {
    const results = resultsOf(
      report(
        { status: 'passed', title: 'chain', meta: { build: NODE_24 } },
        { status: 'failed', title: 'sites', meta: { build: NODE_24 } },
        { status: 'passed', title: 'hot at 997 Hz', meta: { build: NODE_24, split: SPLIT } },
        { status: 'skipped', title: 'other', meta: { build: NODE_24 } },
        { status: 'passed', title: 'of no build' },
      ),
    );
    expect(results).toEqual([
      { ...NODE_24, passed: ['chain', 'hot at 997 Hz'], failed: ['sites'], splits: [SPLIT] },
    ]);
  });

  it('replace earlier ones of the same series, and stand in the order of their versions', () => {
    const result = (b: TestedBuild, ...passed: string[]) => ({ ...b, passed, failed: [], splits: [] });
    const known = [
      result(build('Python 3.13', '3.13.5'), 'names'),
      result(build('Python 3.9', '3.9.2'), 'names'),
      result(NODE_24, 'chain'),
    ];
    const merged = mergeResults(known, [result(build('Python 3.13', '3.13.18'), 'deep', 'thread')]);
    expect(merged.map(({ version, passed }) => [version, passed])).toEqual([
      ['3.9.2', ['names']],
      ['3.13.18', ['deep', 'thread']],
      ['24.21.0', ['chain']],
    ]);
  });

  it('of one version are kept a test each: the last counts', () => {
    const earlier = { ...NODE_24, passed: ['chain', 'hot at 997 Hz'], failed: ['sites'], splits: [SPLIT] };
    const later = {
      ...NODE_24,
      passed: ['sites'],
      failed: ['hot at 997 Hz'],
      splits: [{ ...SPLIT, share: 0.5 }],
    };
    expect(mergeResults([earlier], [later])).toEqual([
      { ...later, passed: ['chain', 'sites'], failed: ['hot at 997 Hz'] },
    ]);
  });

  it('verify a version where every test of one of its builds passed', () => {
    const result = (b: TestedBuild, failed: string[]) => ({ ...b, passed: ['deep'], failed, splits: [] });
    const versions = verifiedVersions([
      result(build('Python 3.13', '3.13.5'), []),
      result({ ...build('Python 3.13', '3.13.18'), origin: 'elsewhere' }, ['names']),
      result(build('Python 3.14t', '3.14.10t'), []),
      result(build('Python 3.15', '3.15.2'), ['names']),
      result(NODE_24, []),
    ]);
    expect([...versions]).toEqual([
      ['cpython', ['3.13', '3.14t']],
      ['v8', ['13.6']],
    ]);
  });

  it('fill the place that the page has for them', () => {
    expect(fillIn('a\n<!-- x -->\nold\n<!-- /x -->\nb', 'x', 'new')).toBe(
      'a\n<!-- x -->\nnew\n<!-- /x -->\nb',
    );
    expect(() => fillIn('a', 'x', 'new')).toThrow('<!-- x -->');
  });
});
