import { expect, test } from 'vitest';
import { CpuBudget } from './cpu-budget.ts';

/** An agent whose CPU time follows the samples that it takes, with a delay of two seconds. */
class FakeAgent {
  share = 0;
  cpuMs = 0;
  nowMs = 0;
  /** Cores that the machine gives it. */
  given = Number.POSITIVE_INFINITY;
  /** Cores that it takes whatever it samples. */
  fixed = 0;
  #backlogMs = 0;
  readonly shares: number[] = [];
  readonly #delayed = [0, 0];
  readonly budget: CpuBudget;

  constructor(limit: number) {
    this.budget = new CpuBudget({
      limit,
      cpuMs: () => this.cpuMs,
      nowMs: () => this.nowMs,
      isBehind: () => this.#backlogMs > 1000,
      shed: (share) => {
        this.share = share;
      },
    });
  }

  /** `demand`: cores that all samples would take. */
  run(seconds: number, demand: number): number {
    const before = this.cpuMs;
    for (let i = 0; i < seconds; i++) {
      this.#delayed.push(demand * (1 - this.share) * 1000);
      const wantedMs = this.#delayed.shift()! + this.fixed * 1000 + this.#backlogMs;
      const takenMs = Math.min(wantedMs, this.given * 1000);
      this.#backlogMs = wantedMs - takenMs;
      this.cpuMs += takenMs;
      this.nowMs += 1000;
      this.budget.check();
      this.shares.push(this.share);
    }
    return (this.cpuMs - before) / 1000 / seconds;
  }
}

test('a burst after a quiet time is taken whole', () => {
  const agent = new FakeAgent(0.5);
  agent.run(60, 0.1);
  agent.run(8, 1.2);
  agent.run(60, 0.1);
  expect(Math.max(...agent.shares)).toBe(0);
  expect(agent.budget.stats.secondsShedding).toBe(0);
});

test.each([0.8, 1.5, 6, 40])('keeps the limit with a demand of %d cores, in the long run', (demand) => {
  const agent = new FakeAgent(0.5);
  agent.run(60, demand);
  expect(agent.run(120, demand)).toBeGreaterThan(0.4);
  expect(agent.run(120, demand)).toBeLessThan(0.6);
});

test('takes all samples again soon after the demand is gone', () => {
  const agent = new FakeAgent(0.5);
  agent.run(120, 6);
  expect(agent.share).toBeGreaterThan(0.5);
  agent.run(90, 0.2);
  expect(agent.share).toBe(0);
});

test('takes all samples again soon after a start that cost much whatever was sampled', () => {
  const agent = new FakeAgent(0.5);
  agent.fixed = 1;
  agent.run(40, 0.2);
  expect(agent.share).toBeGreaterThan(0.5);
  agent.fixed = 0;
  agent.run(25, 0.2);
  expect(agent.share).toBe(0);
});

test('does not fall behind for long where the machine gives it less than it may take', () => {
  const agent = new FakeAgent(0.5);
  agent.given = 0.2;
  agent.run(60, 2);
  const before = agent.budget.stats.timesBehind;
  expect(before).toBeGreaterThan(0);
  const used = agent.run(200, 2);
  expect(agent.budget.stats.timesBehind - before).toBeLessThan(30);
  expect(used).toBeGreaterThan(0.12);
});

test('always takes some', () => {
  const agent = new FakeAgent(0.5);
  agent.run(600, 100_000);
  expect(agent.share).toBeLessThan(1);
});
