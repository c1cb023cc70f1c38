/** An agent with less memory than it needs gives up what it can, says so, and goes on. */
import { expect, it } from 'vitest';
import { AgentProcess } from './support/agent-process.ts';
import { startCollectorProcess } from './support/collector.ts';
import { missingRights } from './support/fixtures.ts';

const BUDGET = 64 << 20;

it.skipIf(missingRights)(
  'a budget that is too small costs caches and tables, not samples',
  async () => {
    const collector = await startCollectorProcess();
    const agent = new AgentProcess(
      collector.grpc,
      ...['--samples-per-second', '97', '--reporter-interval', '1s', '--max-memory', '64MiB'],
    );
    try {
      const end = Date.now() + 60_000;
      while (!agent.log.includes('--max-memory')) {
        if (Date.now() > end || agent.hasEnded) throw new Error(`no warning: ${agent.log}`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(agent.log).toMatch(/\d+ MiB are in use, and there is nothing left to give up .*: give it more/);
      const counters = await agent.stop();
      expect(counters).toMatchObject({ 'memory.budgetBytes': BUDGET });
      expect(counters['memory.cachesDropped']).toBeGreaterThan(0);
      expect(counters['memory.timesOver']).toBeGreaterThan(1);
      expect(counters['tables.bytes']).toBeLessThanOrEqual(BUDGET / 16);
      expect(counters['samples.reported']).toBe(counters['bpf.samples_sent']);
    } finally {
      await agent.kill();
      await collector.end();
    }
  },
  120_000,
);
