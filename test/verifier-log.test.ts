import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadNative } from '../agent/base/native.ts';
import { packageRoot } from '../agent/base/package-root.ts';
import { CONFIG } from '../agent/records/records.gen.ts';
import { measure } from '../agent/tracer/program-figures.ts';
import { missingRights } from './support/fixtures.ts';

it.skipIf(missingRights)(
  'what the verifier says of a program that it refuses is told, also where its figures were asked for',
  () => {
    const { BpfObject } = loadNative();
    const object = new BpfObject(join(packageRoot(), 'build/everyframe.bpf.o'), {
      rodata: Buffer.alloc(CONFIG.bytes),
      maxEntries: {},
      programs: ['tick'],
      // it jumps by way of this one
      skipMaps: ['samplers'],
      share: [],
      uprobeMulti: false,
      kernelReads: true,
      kernelTypes: '',
    });
    try {
      expect(() => measure(object, '')).toThrow(/tick:\n(.*\n)*.*(invalid func unknown|unknown opcode)/);
    } finally {
      object.close();
    }
  },
);
