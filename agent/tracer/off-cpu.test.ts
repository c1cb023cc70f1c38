import { expect, it } from 'vitest';
import type { Native, NativeBpfObject } from '../base/native.ts';
import { OffCpu } from './off-cpu.ts';
import type { OpenObject } from './open-object.ts';

it('lets go of a sampler that is loaded while it is stopped, and blames the kernel for nothing', async () => {
  let open = 0;
  const warnings: string[] = [];
  const openObject: OpenObject = (_, { share = [] }) => {
    for (const each of share) each.mapFd('threads');
    open++;
    const object: Partial<NativeBpfObject> = {
      load: () => new Promise((resolve) => setImmediate(resolve)),
      loadSync: () => {},
      mapFd: () => 1,
      programFd: () => 1,
      close: () => void open--,
    };
    return object as NativeBpfObject;
  };
  const native: Partial<Native> = {
    mapReadAll: () => Buffer.alloc(0),
    mapUpdate: () => {},
    monotonicNs: () => 1n,
  };
  const base = { mapFd: (_) => 1 } as Partial<NativeBpfObject> as NativeBpfObject;
  const offCpu = new OffCpu(
    { budget: 1 },
    {
      native: native as Native,
      open: openObject,
      base,
      readPages: () => [],
      warn: (message) => void warnings.push(message),
    },
  );
  const following = offCpu.follow([], base);
  await offCpu.stop();
  await following;
  expect(warnings).toEqual([]);
  await offCpu.close();
  expect(open).toBe(0);
});
