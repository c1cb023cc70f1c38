/** A machine pays for a runtime once it runs there; the change of the sampler costs no tick. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RUNTIMES } from '../agent/interpreters/registry.ts';
import { RecordType } from '../agent/tracer/records.gen.ts';
import { Tracer } from '../agent/tracer/tracer.ts';
import { hasTool, missingRights } from './support/fixtures.ts';

const STATS = '/proc/sys/kernel/bpf_stats_enabled';
const RUNTIME_MAPS = RUNTIMES.flatMap(({ maps }) => maps);

interface Shown {
  id: number;
  name?: string;
  run_cnt?: number;
  map_ids?: number[];
}
const show = (what: 'prog' | 'map'): Shown[] =>
  JSON.parse(execFileSync('bpftool', [what, 'show', '-j'], { encoding: 'utf8' })) as Shown[];

describe.skipIf(missingRights || !hasTool('bpftool'))('the sampler', () => {
  const statsBefore = readFileSync(STATS, 'utf8');
  let known: Set<number>;
  let tracer: Tracer;
  let sampleRecords = 0;

  /** This tracer's entry program: how often the kernel ran it is the number of ticks. */
  const tick = (): Shown => show('prog').find(({ id, name }) => name === 'tick' && !known.has(id))!;
  const runtimeMaps = (): string[] => {
    const ids = new Set(
      show('prog')
        .filter(({ id }) => !known.has(id))
        .flatMap(({ map_ids }) => map_ids ?? []),
    );
    const names = show('map').flatMap(({ id, name }) => (ids.has(id) && name ? [name] : []));
    return RUNTIME_MAPS.filter((name) => names.includes(name));
  };
  const untilSamples = async (more: number): Promise<void> => {
    const goal = tracer.counters().samples + more;
    const end = Date.now() + 60_000;
    while (tracer.counters().samples < goal) {
      if (Date.now() > end) throw new Error(`fewer than ${more} samples in a minute`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };

  beforeAll(async () => {
    writeFileSync(STATS, '1');
    known = new Set(show('prog').map(({ id }) => id));
    tracer = new Tracer(
      // the idle task, too: each tick of each CPU is a sample
      { samplesPerSecond: 1999, sendIdleFrames: true, maxUserFrames: 1023, maxTableBytes: 4 << 20 },
      {
        onRecord(buffer, at) {
          if (buffer.readUInt16LE(at) === RecordType.SAMPLE) sampleRecords++;
        },
      },
      (message) => expect.unreachable(message),
    );
    await tracer.start();
  });

  afterAll(async () => {
    await tracer?.close();
    writeFileSync(STATS, statsBefore);
  });

  it('knows no runtime at first, and has no map of one', async () => {
    await untilSamples(500);
    expect(runtimeMaps()).toEqual([]);
  });

  it('gets a runtime with its maps while it samples', async () => {
    const loaded: string[] = [];
    for (const plugin of RUNTIMES) {
      const before = tracer.counters().samples;
      expect(await tracer.samplers.add(plugin)).toBe(true);
      expect(tracer.counters().samples).toBeGreaterThan(before);
      loaded.push(...plugin.maps);
      await untilSamples(500);
      expect(runtimeMaps()).toEqual(RUNTIME_MAPS.filter((name) => loaded.includes(name)));
    }
  });

  it('has lost no tick and counted none twice', async () => {
    await tracer.stopSampling();
    const counters = tracer.counters();
    expect(counters.sampler_missing).toBe(0);
    expect(counters.samples + counters.samples_filtered + counters.samples_idle).toBe(tick().run_cnt);
    expect(counters.samples_sent + counters.samples_lost_ring + counters.traces_lost_ring).toBe(
      counters.samples,
    );
    expect(sampleRecords).toBe(counters.samples_sent);
  });
});
