import { describe, expect, it } from 'vitest';
import {
  cpuType,
  findType,
  isCpuType,
  type ProfileType,
  typeKey,
  typeName,
  typeNames,
  UnknownTypeError,
  valueKind,
} from './profile-type.ts';

const typeOf = (sample: string, period = '/', every = 0n): ProfileType => {
  const [type = '', unit = ''] = sample.split('/');
  const [periodType = '', periodUnit = ''] = period.split('/');
  return {
    sampleType: { type, unit },
    periodType: { type: periodType, unit: periodUnit },
    period: every,
  };
};

const HEAP = ['alloc_objects/count', 'alloc_space/bytes', 'inuse_objects/count', 'inuse_space/bytes'].map(
  (name) => typeOf(name, 'space/bytes', 524_288n),
);
const OFF_CPU = typeOf('off_cpu/nanoseconds');

describe('names', () => {
  it('are the sample type and its unit', () => {
    expect(typeName(OFF_CPU)).toBe('off_cpu/nanoseconds');
    expect(typeName(cpuType(10_000_000n))).toBe('samples/count');
  });

  it('say the period type where another type has the same', () => {
    const types = [cpuType(1n), typeOf('samples/count', 'wall/nanoseconds', 1n), OFF_CPU];
    expect(typeNames(types)).toEqual([
      'samples/count:cpu/nanoseconds',
      'samples/count:wall/nanoseconds',
      'off_cpu/nanoseconds',
    ]);
    expect(typeNames([cpuType(1n), cpuType(2n)])).toEqual(['samples/count', 'samples/count']);
  });

  it('are keys that do not depend on the period, or on other types', () => {
    expect(typeKey(cpuType(1n))).toBe(typeKey(cpuType(2n)));
    expect(typeKey(OFF_CPU)).toBe('off_cpu/nanoseconds');
    expect(typeKey(typeOf('sched:sched_switch/count'))).toBe('sched:sched_switch/count');
  });

  it('are keys of one type only, whatever senders write into names', () => {
    const sampleTypes = [
      { type: 'samples', unit: 'count:cpu/nanoseconds' },
      { type: 'samples/count:cpu', unit: 'nanoseconds' },
      { type: 'samples%2Fcount:cpu', unit: 'nanoseconds' },
    ];
    const types = [cpuType(1n), ...sampleTypes.map((sampleType) => ({ ...OFF_CPU, sampleType }))];
    expect(new Set(types.map(typeKey)).size).toBe(types.length);
  });
});

describe('findType', () => {
  const types = [...HEAP, OFF_CPU, cpuType(1n), typeOf('samples/count', 'wall/nanoseconds')];

  it('takes names, keys, and the sample type alone', () => {
    expect(findType(types, 'inuse_space/bytes')).toBe(3);
    expect(findType(types, 'inuse_space')).toBe(3);
    expect(findType(types, 'inuse_space/bytes:space/bytes')).toBe(3);
    expect(findType(types, 'samples/count:wall/nanoseconds')).toBe(6);
  });

  it('takes cpu for CPU samples, and else for what is called so', () => {
    expect(findType(types, 'cpu')).toBe(5);
    expect(findType([OFF_CPU, typeOf('cpu/nanoseconds')], 'cpu')).toBe(1);
  });

  it('lists what there is', () => {
    const find =
      (name: string, of = types) =>
      () =>
        findType(of, name);
    expect(find('alloc')).toThrow(UnknownTypeError);
    expect(find('alloc', HEAP.slice(0, 2))).toThrow(
      'no samples of the type "alloc": there are alloc_objects/count, alloc_space/bytes',
    );
    expect(find('samples/count')).toThrow(
      'several types are named "samples/count": write one of samples/count:cpu/nanoseconds, samples/count:wall/nanoseconds',
    );
    expect(find('cpu', [])).toThrow('there is none');
  });
});

it('knows CPU samples from other counts', () => {
  expect(isCpuType(cpuType(0n))).toBe(true);
  expect(isCpuType(typeOf('samples/count', 'wall/nanoseconds'))).toBe(false);
  expect(isCpuType(typeOf('events/count'))).toBe(false);
  expect(isCpuType(typeOf('cpu/nanoseconds', 'cpu/nanoseconds'))).toBe(false);
});

it('knows what adds up over time and what is a state', () => {
  expect(HEAP.map(valueKind)).toEqual(['rate', 'rate', 'level', 'level']);
  expect(valueKind(typeOf('goroutine/count'))).toBe('level');
  for (const name of ['samples/count', 'off_cpu/nanoseconds', 'delay/nanoseconds', 'contentions/count'])
    expect(valueKind(typeOf(name))).toBe('rate');
});
