import { expect, test } from 'vitest';
import { APPROXIMATE_LINES, describeApproximateLines } from './approximate-lines.ts';
import { attributesText } from './attributes.ts';
import { emptyProcess, type Process } from './profile.ts';

const java = (pid: number): Process => ({
  ...emptyProcess(),
  pid,
  executableName: 'java',
  attributes: attributesText([APPROXIMATE_LINES]),
});

test('a sentence names the processes whose lines are not exact', () => {
  expect(describeApproximateLines({ processes: [emptyProcess()] })).toBe('');
  expect(describeApproximateLines({ processes: [emptyProcess(), java(7)] })).toMatch(
    /^Lines and inlined callees of java \(7\) are approximate: .*DebugNonSafepoints/,
  );
  expect(describeApproximateLines({ processes: [java(7), java(8), java(9)] })).toMatch(
    /java \(7\) and 2 more/,
  );
});
