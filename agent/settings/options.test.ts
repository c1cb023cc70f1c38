import { describe, expect, it } from 'vitest';
import { parseAgentOptions, parseDuration } from './options.ts';

describe('parseDuration', () => {
  it.each([
    ['5s', 5000],
    ['250ms', 250],
    ['1m', 60_000],
    ['0.5h', 1_800_000],
    ['10', 10_000],
    // as Go writes them
    ['1m0s', 60_000],
    ['1m30.5s', 90_500],
  ])('reads %s', (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each(['', 'five', '5x', '-1s', '5 s', '1m2', '1.2.3s'])('refuses "%s"', (text) => {
    expect(() => parseDuration(text)).toThrow(/is not a valid duration/);
  });
});

describe('parseAgentOptions', () => {
  it('has the defaults of the table', () => {
    expect(parseAgentOptions({})).toMatchObject({
      samplesPerSecond: 20,
      reporterInterval: 5000,
      maxUserFrames: 1023,
      compression: 'auto',
      disableTls: false,
    });
  });

  it('lets flags win over the environment', () => {
    const env = { EVERYFRAME_SAMPLES_PER_SECOND: '50', OTEL_PROFILING_AGENT_DISABLE_TLS: 'true' };
    expect(parseAgentOptions({}, { env })).toMatchObject({ samplesPerSecond: 50, disableTls: true });
    expect(parseAgentOptions({ samplesPerSecond: '97' }, { env }).samplesPerSecond).toBe(97);
  });

  it.each([
    [{ samplesPerSecond: '0' }, /--samples-per-second or -F is "0"/],
    [{ samplesPerSecond: 'fast' }, /is "fast": give a whole number from 1 to 10000/],
    [{ reporterJitter: '2' }, /--reporter-jitter is "2": give a number from 0 to 1/],
    [{ maxUserFrames: '5000' }, /from 1 to 1023/],
    [{ compression: 'zip' }, /give auto, gzip or none/],
    [{ probabilisticInterval: '1s' }, /60s to 300s/],
  ])('refuses %j', (flags, message) => {
    expect(() => parseAgentOptions(flags)).toThrow(message);
  });
});

it('waits are left out unless asked for, and their probability is one', () => {
  expect(parseAgentOptions({})).toMatchObject({ offCpu: false, offCpuBudget: 200, offCpuThreshold: 0 });
  expect(parseAgentOptions({ offCpuThreshold: '0.25' }).offCpuThreshold).toBe(0.25);
  for (const bad of ['1.5', '-1', 'many'])
    expect(() => parseAgentOptions({ offCpuThreshold: bad })).toThrow(/--off-cpu-threshold is/);
});

it('the memory budget is a size', () => {
  expect(parseAgentOptions({}).maxMemory).toBe(256 * 2 ** 20);
  expect(parseAgentOptions({ maxMemory: '1.5G' }).maxMemory).toBe(1.5 * 2 ** 30);
  for (const maxMemory of ['256', 'lots', '16MiB'])
    expect(() => parseAgentOptions({ maxMemory })).toThrow('--max-memory: give a size of 64MiB or more');
});
