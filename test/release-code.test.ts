/** What the agent gives back of its own memory, in a process of its own: this one's code is the test runner's. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const PROGRAM = `
  const native = process.getBuiltinModule('node:module').createRequire('/')(process.argv[1]);
  const { readFileSync } = process.getBuiltinModule('node:fs');
  const fileBytes = () => Number(/RssFile:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'latin1'))[1]) * 1024;
  // a page that the dynamic linker or anybody else has written must not be lost
  const dirtyBytes = () => Number(/RssAnon:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'latin1'))[1]) * 1024;
  const before = { file: fileBytes(), dirty: dirtyBytes() };
  const released = native.releaseCode();
  const after = { file: fileBytes(), dirty: dirtyBytes() };
  const answers = [1, 2, 3].map(() => JSON.stringify(/(a+)b/.exec('xaab')) + new Intl.NumberFormat('de').format(1234.5));
  console.log(JSON.stringify({ released, before, after, answers }));
`;

test('code that is not needed any more leaves memory, and comes back', () => {
  const addon = new URL('../build/everyframe.node', import.meta.url).pathname;
  const out = execFileSync(process.execPath, ['-e', PROGRAM, addon], { encoding: 'utf8' });
  const { released, before, after, answers } = JSON.parse(out);
  expect(released).toBeGreaterThan(5 << 20);
  expect(after.file).toBeLessThan(before.file - released / 2);
  expect(after.dirty).toBeGreaterThan(before.dirty - (1 << 20));
  expect(new Set(answers)).toEqual(new Set(['["aab","aa"]1.234,5']));
});
