import { describe, expect, it } from 'vitest';
import { describeBox, describeView } from '../../collector/web/flame/describe.ts';
import { buildModel } from './flame-model.ts';
import { CPU_SAMPLES, chooseType, timeScale } from './shown-type.ts';
import type { FlameGraphResponse, TypeAnswer } from './tree-answer.ts';

const OFF_CPU: TypeAnswer = {
  ...{ name: 'off_cpu/nanoseconds', type: 'off_cpu', unit: 'nanoseconds', periodType: '', periodUnit: '' },
  ...{ kind: 'rate', shown: 'sum' },
};
const IN_USE: TypeAnswer = {
  ...{
    name: 'inuse_space/bytes',
    type: 'inuse_space',
    unit: 'bytes',
    periodType: 'space',
    periodUnit: 'bytes',
  },
  ...{ kind: 'level', shown: 'last' },
};

describe('timeScale', () => {
  it('draws CPU samples as busy CPUs', () => {
    const scale = timeScale(CPU_SAMPLES, 500, 10_000_000);
    expect(scale.of(100 * scale.factor)).toBe('2 CPUs busy');
  });

  it('draws time of threads as threads', () => {
    const waited = timeScale(OFF_CPU, 500, 0);
    expect(waited.of(1e9 * waited.factor)).toBe('2 threads waiting');
  });

  it('draws other rates by the second, and levels as they are', () => {
    const delay = timeScale({ ...OFF_CPU, name: 'delay/nanoseconds', type: 'delay' }, 500, 0);
    expect(delay.label(1e9 * delay.factor)).toBe('2 s/s');
    expect(delay.of(1e6 * delay.factor)).toBe('2 ms/s of delay');
    const events = timeScale({ ...OFF_CPU, name: 'events/count', type: 'events', unit: 'count' }, 2000, 0);
    expect(events.of(3 * events.factor)).toBe('1.5/s of events');
    const inUse = timeScale(IN_USE, 500, 0);
    expect([inUse.factor, inUse.label(2 ** 20), inUse.of(2 ** 20)]).toEqual([
      1,
      '1 MiB',
      '1 MiB of inuse_space',
    ]);
  });
});

describe('chooseType', () => {
  it('is what the address says, or CPU samples, or what there is', () => {
    expect(chooseType('x', [CPU_SAMPLES])).toBe('x');
    expect(chooseType('cpu', [IN_USE])).toBe('cpu');
    expect(chooseType('inuse_space', [CPU_SAMPLES, IN_USE])).toBe('inuse_space/bytes');
    expect(chooseType('samples/count', [IN_USE, CPU_SAMPLES])).toBe('cpu');
    expect(chooseType('', [IN_USE, CPU_SAMPLES])).toBe('cpu');
    expect(chooseType('', [IN_USE, OFF_CPU])).toBe('inuse_space/bytes');
    expect(chooseType('', [])).toBe('cpu');
  });
});

describe('a picture', () => {
  const response: FlameGraphResponse = {
    ...{ fromMs: 0, toMs: 1000, samples: 4, allSamples: 8, cpuNanos: 4e7, cpus: 1, timeline: [] },
    strings: ['', 'all', 'main'],
    kinds: ['root', 'native'],
    frames: { name: [1, 2], file: [0, 0], mapping: [0, 0], kind: [0, 1] },
    nodes: { parent: [0, 0], frame: [0, 1], self: [1, 3] },
    folded: { nodes: 0, samples: 0 },
    leaves: { samples: 4, kinds: [], libraries: [], incomplete: 0 },
  };

  it('knows CPU samples, also of files that say no type, with their time', () => {
    expect(describeView(buildModel(response), 0)).toBe('4 samples, about 40 ms of CPU time');
    expect(describeView(buildModel({ ...response, type: CPU_SAMPLES }), 1)).toBe(
      '3 samples (75.0 %), about 30 ms of CPU time',
    );
  });

  it('shows other types in their unit', () => {
    const nodes = { ...response.nodes, self: [1e9, 6_050_000_000] };
    const waited = buildModel({ ...response, type: OFF_CPU, samples: 7_050_000_000, nodes });
    expect(describeView(waited, 0)).toBe('7.05 s of waiting');
    expect(describeBox(waited, 1, 0)).toContain('6.05 s, 6.05 s of its own');
    const inUse = buildModel({ ...response, type: IN_USE });
    expect(describeView(inUse, 0)).toBe('4 bytes of inuse_space, the last value of each process');
  });
});
