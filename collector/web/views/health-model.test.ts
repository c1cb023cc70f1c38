import { describe, expect, it } from 'vitest';
import { CPU_SAMPLES } from '../../../common/flame/shown-type.ts';
import { CUT_MARKERS } from '../../../common/profile/model/cut-markers.ts';
import { UNNAMED_REASONS, unnamedMarker } from '../../../common/profile/model/unnamed-markers.ts';
import type { HealthAnswer } from '../../api/types.ts';
import type { AgentStatus } from '../../status/status.ts';
import { listLosses, listStages } from './health-model.ts';

const NOW = 1_000_000_000;
const CUTS = [
  { marker: CUT_MARKERS.noTable, samples: 8 },
  { marker: '[something else]', samples: 2 },
];

const agent = (counters?: Record<string, number>): AgentStatus => ({
  peer: '10.0.0.7',
  host: 'web-1',
  lastMs: NOW,
  lastSamplesMs: NOW,
  samples: 90,
  samplesPerSecond: 40,
  ...(counters === undefined ? {} : { counters }),
});

const health = (changes: Partial<HealthAnswer['status']> = {}): HealthAnswer => ({
  samples: 80,
  allSamples: 80,
  cpuNanos: 4e9,
  cpus: 2,
  fromMs: NOW - 60_000,
  toMs: NOW,
  type: CPU_SAMPLES,
  quality: { samples: 80, unwound: 70, named: 60, attributed: 79, cuts: CUTS, unread: [], worst: [] },
  status: {
    nowMs: NOW,
    startedMs: NOW - 600_000,
    listen: { grpc: 'g', http: 'h' },
    requests: { accepted: 3, refused: 0, repeated: 0 },
    refusals: [],
    rejections: [],
    samples: { received: 92, stored: 90, rejected: 2 },
    agents: [agent()],
    store: {
      samples: 90,
      bytes: 1,
      maxBytes: 2,
      maxAgeMs: 3,
      oldestMs: undefined,
      newestMs: undefined,
      droppedForMemory: 0,
      droppedForAge: 0,
    },
    ...changes,
  },
});

describe('listStages', () => {
  it('says what the store can say where agents say nothing', () => {
    expect(listStages(health()).map(({ stage, count, of }) => [stage, count, of])).toEqual([
      ['taken', undefined, undefined],
      ['unwound', 70, 80],
      ['named', 60, 80],
      ['attributed', 79, 80],
      ['exported', undefined, undefined],
      ['stored', 90, 92],
    ]);
  });

  it('sums what agents count, without what still waits in their queues', () => {
    const counters = {
      'bpf.samples': 100,
      'bpf.samples_lost_ring': 2,
      'traces.lostTraceMissing': 1,
      'reporter.samplesPushed': 95,
      'reporter.samplesSent': 90,
      'reporter.samplesQueued': 4,
    };
    const stages = listStages(health({ agents: [agent(counters), agent(counters), agent()] }));
    expect(stages.find(({ stage }) => stage === 'taken')).toMatchObject({ count: 194, of: 200 });
    expect(stages.find(({ stage }) => stage === 'exported')).toMatchObject({
      count: 180,
      of: 182,
      scope: 'since the agents started',
    });
  });

  it('says how many of those that were sent are no samples, where more were than were sampled', () => {
    const counters = {
      'bpf.samples': 100,
      'reporter.samplesPushed': 1315,
      'reporter.samplesSent': 1315,
      'threads.reported': 1200,
      'liveHeap.reported': 15,
    };
    const stages = listStages(health({ agents: [agent(counters)] }));
    expect(stages.find(({ stage }) => stage === 'exported')).toMatchObject({
      count: 1315,
      scope: expect.stringMatching(/^since the agents started; 1,215 of them are sums/),
    });
  });
});

describe('listLosses', () => {
  it('names each loss with its reason and what to do, by stage', () => {
    const counters = { 'bpf.samples_lost_ring': 3, 'bpf.user_regs_failed': 1 };
    const rejections = [{ reason: 'bad stack', count: 2, lastMs: NOW }];
    const losses = listLosses(health({ agents: [agent(counters)], rejections }));
    expect(losses.map(({ stage, count }) => [stage, count])).toEqual([
      ['taken', 3],
      ['unwound', 8],
      ['unwound', 2],
      ['unwound', 1],
      ['named', 20],
      ['attributed', 1],
      ['stored', 2],
    ]);
    expect(losses[1]).toMatchObject({ reason: expect.stringMatching(/no unwind table/), of: 80 });
    expect(losses[2]).toMatchObject({ reason: 'something else', of: 80 });
    expect(losses.every(({ reason, advice }) => reason !== '' && advice !== '')).toBe(true);
  });
});

it('says in words of what language functions have no name, and why', () => {
  const answer = health();
  const unread = [
    { marker: unnamedMarker('cpython', UNNAMED_REASONS.replaced), samples: 12 },
    { marker: unnamedMarker('v8', UNNAMED_REASONS.malformed), samples: 5 },
  ];
  const rows = listLosses({ ...answer, quality: { ...answer.quality, unread } });
  const named = rows.filter(({ stage }) => stage === 'named').map(({ count, reason }) => [count, reason]);
  expect(named).toEqual([
    [12, expect.stringMatching(/^Python functions that ran once and were freed before/)],
    [5, expect.stringMatching(/^JavaScript functions whose name is not stored/)],
    // of 20 that are not wholly named
    [3, expect.stringMatching(/its file has no symbols/)],
  ]);
});
