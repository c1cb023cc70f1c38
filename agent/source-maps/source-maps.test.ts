import { afterEach, expect, test } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { emptyMapping } from '../../common/profile/profile.ts';
import { SourceMaps } from './source-maps.ts';

const maps = new SourceMaps();
afterEach(() => maps.stop());

test('that a script has no map is asked once, and again once another program runs under the PID', async () => {
  const pid = toPid(process.pid);
  const ask = (): Promise<void> => {
    const line = { function: 'f', systemName: '', file: '/nonexistent/a.js', line: 1, column: 1 };
    maps.add(pid, { mapping: emptyMapping(), address: 0, frameType: 'v8js', lines: [line] });
    return maps.nameFrames();
  };
  await ask();
  await ask();
  expect(maps.stats).toMatchObject({ scripts: 1, none: 1 });
  maps.forgetProcess(pid);
  await ask();
  expect(maps.stats).toMatchObject({ scripts: 2, none: 2 });
});
