import { expect, test } from 'vitest';
import { collectBetweenWork, collectDeadBuffers } from './collect-garbage.ts';
import { loadNative } from './native.ts';

const MIB = 1 << 20;

test('buffers that died old go as well, though most collections look at young ones only', () => {
  const before = process.memoryUsage().arrayBuffers;
  const held: Uint8Array[] = [];
  let most = 0;
  for (let round = 0; round < 100; round++) {
    // each survives three collections
    if (held.length > 3) held.shift();
    held.push(new Uint8Array(3 * MIB));
    for (let i = 0; i < 10; i++) new Uint8Array(MIB).fill(1);
    collectDeadBuffers();
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }
  // V8 frees them on a thread of its own, which may be late
  expect(most).toBeLessThan(90 * MIB);
});

test('what a thread lets go of is collected while its event loop goes on', async () => {
  let held: object[] = [];
  for (let i = 0; i < 400_000; i++) held.push({ i, list: [i] });
  const before = process.memoryUsage().heapUsed;
  held = [];
  let turns = 0;
  const turn = setInterval(() => turns++, 1);
  await collectBetweenWork(() => loadNative().beginCollection(), 60_000);
  clearInterval(turn);
  expect(before - process.memoryUsage().heapUsed).toBeGreaterThan(10 * MIB);
  expect(turns).toBeGreaterThan(0);
});

test('a collection that does not come is not waited for', async () => {
  await collectBetweenWork(() => {}, 1);
});
