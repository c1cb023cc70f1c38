import { expect, it } from 'vitest';
import { type WaitsAnswer, waitsText } from './waits.ts';

const ANSWER: WaitsAnswer = {
  fromMs: Date.UTC(2026, 0, 1),
  toMs: Date.UTC(2026, 0, 1, 0, 15),
  threadNs: 10e9,
  states: [
    { name: 'blocked:lock', exactNs: 7.5e9, sampledNs: 7.4e9 },
    { name: 'running', exactNs: 2.5e9, sampledNs: 0 },
  ],
  by: 'process',
  groups: [{ name: 'app', exactNs: 7.5e9, sampledNs: 7.4e9 }],
  groupCount: 1,
  wakers: [{ name: 'holder', sampledNs: 7e9 }],
};

it('shows what was counted beside what stacks stand for', () => {
  expect(waitsText(ANSWER)).toEqual([
    '10 s of threads, 2026-01-01T00:00:00Z to 2026-01-01T00:15:00Z',
    '     exact   share    by stacks  state',
    '     7.5 s   75.0%        7.4 s  blocked:lock',
    '     2.5 s   25.0%            -  running',
    '    waited   share    by stacks  process',
    '     7.5 s   75.0%        7.4 s  app',
    '7 s of waits for locks were ended by the thread holder',
    expect.stringMatching(/^exact: counted at each switch/),
  ]);
});

it('says what is left out', () => {
  expect(waitsText({ ...ANSWER, groupCount: 4 })).toContain('… 3 more groups: raise --limit to see them');
});

it('says what to do where there is nothing', () => {
  expect(waitsText({ ...ANSWER, threadNs: 0, states: [], groups: [] })).toEqual([
    expect.stringMatching(/--off-cpu/),
  ]);
});
