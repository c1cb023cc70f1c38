import { expect, test } from 'vitest';
import { IdleTime } from './idle-time.ts';

const SECOND = 1000;

/** Idle times of workers that are needed again so long after the one before them ended. */
function after(...pauses: number[]): number[] {
  const idle = new IdleTime(12 * SECOND);
  let now = 0;
  return pauses.map((pause) => {
    now += pause * SECOND;
    idle.noteStart(now);
    now += idle.ms;
    idle.noteEnd(now);
    return idle.ms / SECOND;
  });
}

test('a worker that is needed again soon waits longer, up to a limit', () => {
  expect(after(0, 20, 59, 1, 1)).toEqual([12, 24, 48, 96, 96]);
});

test('where none was needed for a minute it is as at first', () => {
  expect(after(0, 20, 61, 20)).toEqual([12, 24, 12, 24]);
});

test('one that ended for another reason is not one that ended too early', () => {
  const idle = new IdleTime(12 * SECOND);
  idle.noteStart(0);
  idle.noteStart(5 * SECOND);
  expect(idle.ms).toBe(12 * SECOND);
});
