/** What the agent gives back of its own memory, in a process of its own: this one's code is the test runner's. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ADDON = new URL('../build/everyframe.node', import.meta.url).pathname;
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

/** As a worker, which may read nothing of its own any more once it is confined. Does one step for each line. */
const CONFINED = `
  const native = process.getBuiltinModule('node:module').createRequire('/')(process.argv[1]);
  native.releaseCode();
  native.confine();
  const steps = [
    () => new Intl.NumberFormat('de').format(1234.5) + JSON.stringify(new URL('http://a/b?c').searchParams.has('c')),
    () => native.releaseCode(),
    () => new Intl.NumberFormat('de').format(1234.5),
  ];
  process.on('message', () => process.send(steps.shift()()));
`;

test('a confined process gives back what has come since, too', async () => {
  const child = spawn(process.execPath, ['-e', CONFINED, ADDON], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const step = async () => {
    child.send('');
    const [answer] = await once(child, 'message');
    const status = readFileSync(`/proc/${child.pid}/status`, 'latin1');
    return { answer, fileKib: Number(/RssFile:\s+(\d+)/.exec(status)![1]) };
  };
  try {
    const before = await step();
    expect(before.answer).toBe('1.234,5true');
    expect((await step()).fileKib).toBeLessThan(before.fileKib / 2);
    expect((await step()).answer).toBe('1.234,5');
  } finally {
    child.kill();
  }
});

test('code that is not needed any more leaves memory, and comes back', () => {
  const out = execFileSync(process.execPath, ['-e', PROGRAM, ADDON], { encoding: 'utf8' });
  const { released, before, after, answers } = JSON.parse(out);
  expect(released).toBeGreaterThan(5 << 20);
  expect(after.file).toBeLessThan(before.file - released / 2);
  expect(after.dirty).toBeGreaterThan(before.dirty - (1 << 20));
  expect(new Set(answers)).toEqual(new Set(['["aab","aa"]1.234,5']));
});
