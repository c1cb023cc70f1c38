/** A machine pays for a runtime once it runs there; the change of the sampler costs no tick. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Origin, RecordType, SAMPLE } from '../agent/records/records.gen.ts';
import { RUNTIMES } from '../agent/runtimes/runtimes.gen.ts';
import { Tracer } from '../agent/tracer/tracer.ts';
import { hasTool, missingRights } from './support/fixtures.ts';

const STATS = '/proc/sys/kernel/bpf_stats_enabled';
const RUNTIME_MAPS = RUNTIMES.map(({ map }) => map);

interface Shown {
  id: number;
  name?: string;
  run_cnt?: number;
}
/** IDs of what this process has open. */
function ownIds(what: 'prog' | 'map'): Set<number> {
  const id = new RegExp(`^${what}_id:\\s*(\\d+)$`, 'm');
  const texts = readdirSync('/proc/self/fdinfo')
    .map((fd) => `/proc/self/fdinfo/${fd}`)
    // the descriptor of the folder itself is closed by now
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8'));
  return new Set(texts.flatMap((text) => id.exec(text)?.[1] ?? []).map(Number));
}

/** This process's own: other agents may run meanwhile. */
function showOwn(what: 'prog' | 'map'): Shown[] {
  const own = ownIds(what);
  const all = JSON.parse(execFileSync('bpftool', [what, 'show', '-j'], { encoding: 'utf8' })) as Shown[];
  return all.filter(({ id }) => own.has(id));
}

describe.skipIf(missingRights || !hasTool('bpftool'))('the sampler', () => {
  const statsBefore = readFileSync(STATS, 'utf8');
  let tracer: Tracer;
  let sampleRecords = 0;
  /** Of timer ticks: what each counts. */
  let sampleValues = 0n;

  /** This tracer's entry program: how often the kernel ran it is the number of ticks. */
  const tick = (): Shown => showOwn('prog').find(({ name }) => name === 'tick')!;
  const runtimeMaps = (): string[] => {
    const names = showOwn('map').map(({ name }) => name);
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
    tracer = new Tracer(
      // the idle task, too: each tick of each CPU is a sample
      {
        samplesPerSecond: 1999,
        sendIdleFrames: true,
        maxUserFrames: 1023,
        maxTableBytes: 4 << 20,
        runtimes: RUNTIMES,
      },
      {
        onRecord(buffer, at) {
          if (buffer.readUInt16LE(at) !== RecordType.SAMPLE) return;
          sampleRecords++;
          if (buffer.readUInt16LE(at + SAMPLE.origin) === Origin.CPU)
            sampleValues += buffer.readBigUInt64LE(at + SAMPLE.value);
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
      loaded.push(plugin.map);
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
    expect(sampleValues).toBe(BigInt(sampleRecords));
  });
});
