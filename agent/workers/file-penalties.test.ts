import { expect, test } from 'vitest';
import { FilePenalties } from './file-penalties.ts';
import { WorkerFailure } from './worker-failure.ts';

function create() {
  const clock = { ms: 0 };
  const warnings: string[] = [];
  const penalties = new FilePenalties(
    (message) => warnings.push(message),
    () => clock.ms,
  );
  return { clock, warnings, penalties };
}
const fileOf = (key: string, path = `/${key}`) => ({ key, path, lacks: 'frames in it have no names' });
const memory = new WorkerFailure('memory', 'a worker failed: 200 MiB of memory; 128 are allowed');
const stalled = new WorkerFailure('stalled', 'it has waited for 10000 ms');

test('a file that takes workers down is left alone, each time for longer', () => {
  const { clock, penalties, warnings } = create();
  expect(penalties.isLeftAlone('a')).toBe(false);
  const pauses = [1, 2, 3].map(() => penalties.note(fileOf('a', '/tmp/a\nb'), memory));
  expect(pauses).toEqual([600_000, 2_400_000, 9_600_000]);
  clock.ms = 9_599_999;
  expect([penalties.isLeftAlone('a'), penalties.isLeftAlone('b')]).toEqual([true, false]);
  clock.ms = 9_600_000;
  expect(penalties.isLeftAlone('a')).toBe(false);
  expect(warnings[0]).toMatch(
    /^"\/tmp\/a\\nb" could not be read: .*200 MiB.* left alone for 600 s; until then frames in it have no names$/,
  );
});

test('what may pass is tried again soon; what stops says nothing of the file', () => {
  const { penalties } = create();
  expect(penalties.note(fileOf('a'), stalled)).toBe(30_000);
  expect(penalties.note(fileOf('b'), new WorkerFailure('stopped', ''))).toBe(0);
  expect(penalties.stats).toEqual({ crashed: 0, memory: 0, timedOut: 0, stalled: 1, penalised: 1 });
});

test('many of them are not many lines', () => {
  const { penalties, warnings } = create();
  for (let i = 0; i < 10_000; i++) penalties.note(fileOf(String(i)), memory);
  expect(warnings.length).toBe(20);
  expect(penalties.stats).toMatchObject({ memory: 10_000, penalised: 4096 });
});
