import { describe, expect, it } from 'vitest';
import type { AgentStatus, StatusResponse } from '../../status/status.ts';
import { diagnose, type Observed } from './diagnose.ts';

const NOW = 1_000_000_000;

const status = (changes: Partial<StatusResponse> = {}): StatusResponse => ({
  nowMs: NOW,
  startedMs: NOW - 600_000,
  listen: { grpc: '127.0.0.1:11000', http: 'http://127.0.0.1:4318/v1development/profiles' },
  requests: { accepted: 10, refused: 0, repeated: 0 },
  refusals: [],
  rejections: [],
  samples: { received: 100, stored: 100, rejected: 0 },
  agents: [agent()],
  store: {
    samples: 100,
    bytes: 1,
    maxBytes: 2 ** 28,
    maxAgeMs: 3_600_000,
    oldestMs: NOW - 300_000,
    newestMs: NOW,
    droppedForMemory: 0,
    droppedForAge: 0,
  },
  ...changes,
});

const agent = (changes: Partial<AgentStatus> = {}): AgentStatus => ({
  peer: '10.0.0.7',
  host: 'web-1',
  lastMs: NOW - 2000,
  lastSamplesMs: NOW - 2000,
  samples: 100,
  samplesPerSecond: 20,
  ...changes,
});

const observe = (changes: Partial<Observed>): Observed => ({
  status: status(),
  samples: 0,
  error: undefined,
  isRefused: false,
  rangeTitle: 'the last minute',
  where: '',
  isFollowing: true,
  ...changes,
});

const text = (changes: Partial<Observed>): string => {
  const { condition, headline, sentences, command, warnings } = diagnose(observe(changes));
  return [condition, headline, ...sentences, command, ...warnings].join('\n');
};

describe('diagnose', () => {
  it('has nothing to say while data flow, or before the first answer', () => {
    expect(text({ samples: 50 }).trim()).toBe('live');
    expect(text({ status: undefined, samples: undefined }).trim()).toBe('live');
  });

  it('says how many programs an agent is still learning', () => {
    const learning = (count: number) => agent({ counters: { 'executables.learning': count } });
    const agents = [learning(3), learning(1), agent()];
    expect(text({ samples: 50, status: status({ agents }) })).toBe(
      'live\n\n\nLearning 4 programs: stacks through them are incomplete until then.',
    );
    expect(text({ samples: 50, status: status({ agents: [learning(0)] }) }).trim()).toBe('live');
  });

  it('waits for a first agent and says how to start one', () => {
    const quiet = status({ requests: { accepted: 0, refused: 0, repeated: 0 }, agents: [] });
    const said = text({ status: quiet });
    expect(said).toMatch(/^waiting\nNo agent has connected yet/);
    expect(said).toContain('everyframe agent --collection-agent 127.0.0.1:11000 --disable-tls');
  });

  it('shows refused requests and why', () => {
    const refusals = [{ reason: 'too old a version', count: 14, lastMs: NOW - 3000 }];
    const refused = status({ requests: { accepted: 0, refused: 14, repeated: 0 }, agents: [], refusals });
    expect(text({ status: refused })).toContain('14 requests refused');
    expect(text({ status: refused })).toContain('14 × too old a version (last 3.0 s ago)');
  });

  it('tells a connected agent without samples from one that is gone', () => {
    const idle = status({ agents: [agent({ lastSamplesMs: NOW - 120_000 })] });
    expect(text({ status: idle })).toContain('No samples in the last minute');
    expect(text({ status: idle })).toContain('2 min ago from web-1 (10.0.0.7)');
    expect(text({ status: idle })).toContain(
      'The agent is connected: either nothing ran there, or names of new programs are still being looked up.',
    );
    const gone = status({ agents: [agent({ lastMs: NOW - 120_000, lastSamplesMs: NOW - 120_000 })] });
    expect(text({ status: gone })).toContain('Is the agent still running?');
  });

  it('tells an agent that never sent a sample from one whose samples are rejected', () => {
    const silent = status({ agents: [agent({ lastSamplesMs: undefined, samples: 0 })] });
    expect(text({ status: silent })).toContain('An agent is connected, but has sent no samples');
    const rejections = [{ reason: 'its time is in the future', count: 7, lastMs: NOW }];
    const rejected = { ...silent, rejections, samples: { received: 7, stored: 0, rejected: 7 } };
    expect(text({ status: rejected })).toContain('its samples are rejected\n7 × its time is in the future');
  });

  it('speaks of the filter where that is what hides everything', () => {
    expect(text({ where: 'process=nginx' })).toContain('No samples with process=nginx in the last minute');
  });

  it('says why the store can not write', () => {
    const store = { ...status().store, problem: 'No space left on device' };
    expect(text({ status: status({ store }), samples: 5 })).toContain(
      'The store has a problem: No space left on device',
    );
  });

  it('warns beside a picture that is old, incomplete or cut', () => {
    const old = status({ agents: [agent({ lastMs: NOW - 40_000, lastSamplesMs: NOW - 40_000 })] });
    expect(text({ status: old, samples: 5 })).toContain('The last samples came 40 s ago from web-1');
    const rejections = [{ reason: 'bad stack', count: 3, lastMs: NOW }];
    expect(text({ status: status({ rejections }), samples: 5 })).toContain('3 samples rejected: bad stack');
    const past = [{ reason: 'bad stack', count: 3, lastMs: NOW - 600_000 }];
    expect(text({ status: status({ rejections: past }), samples: 5 })).not.toContain('rejected');
    const store = { ...status().store, droppedForMemory: 9 };
    expect(text({ status: status({ store }), samples: 5 })).toContain(
      'Samples older than 5 min were dropped to stay within 256 MiB',
    );
  });

  it('keeps the last picture when the collector does not answer', () => {
    expect(text({ error: 'Failed to fetch', samples: undefined })).toMatch(
      /^unreachable\nThe collector does not answer/,
    );
    expect(text({ error: 'Failed to fetch', samples: 5 })).toContain('This is the last picture it sent.');
  });

  it('quotes the collector where it refuses what a link asks', () => {
    const said = text({ error: '"x" is not a key', isRefused: true, samples: undefined });
    expect(said).toContain('The collector cannot answer what the address asks');
    expect(said).toContain('It says: "x" is not a key.');
  });
});
