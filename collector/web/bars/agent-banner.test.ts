import { expect, it } from 'vitest';
import { describeAgent } from './agent-banner.ts';

const now = Date.UTC(2026, 0, 1, 12);
const lastExit = { code: null, signal: 'SIGKILL', atMs: now - 5000 };

it('says nothing of an agent that never ended, or long ago', () => {
  expect(describeAgent(undefined, now)).toBe('');
  expect(describeAgent({ state: 'running', restarts: 0, startedMs: now }, now)).toBe('');
  const old = { ...lastExit, atMs: now - 700_000 };
  expect(describeAgent({ state: 'running', restarts: 1, startedMs: now, lastExit: old }, now)).toBe('');
});

it('says why it ended, and when it starts again', () => {
  const waiting = { state: 'waiting', restarts: 2, startedMs: now, lastExit, nextTryMs: now + 8000 } as const;
  expect(describeAgent(waiting, now)).toMatch(
    /ended \(SIGKILL, for example out of memory\) at .* starts again in 8\.0 s: nothing is sampled/,
  );
  const coded = { ...lastExit, signal: null, code: 7 };
  expect(describeAgent({ state: 'running', restarts: 3, startedMs: now, lastExit: coded }, now)).toMatch(
    /\(exit code 7\) .* \(restart 3\): the samples of that gap are missing/,
  );
});
