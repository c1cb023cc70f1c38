/**
 * kill -9 in the middle of ingest. What was acknowledged is there after a restart, whole and once; what was not is
 * sent again, as senders do, and is there once then. CRASH_KILLS sets how often (`npm run test:crash`: 20).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { encodeOtlp } from './browser/encode-otlp.ts';
import { Pusher } from './browser/push.ts';
import { profileFromText } from './browser/synthetic-profile.ts';
import { type RunningCollector, startCollectorProcess } from './support/collector.ts';

const KILLS = Number(process.env['CRASH_KILLS'] ?? 3);
const SENDERS = 16;
/** Samples of a request, in several stacks. */
const EVENTS = 60;
const directory = mkdtempSync(join(tmpdir(), 'everyframe-crash-'));
let collector: RunningCollector;
let questions = 0;

afterAll(async () => {
  await collector.end('SIGKILL');
  rmSync(directory, { recursive: true });
});

/** Requests that are told apart by their process, `r17`. */
class Sender {
  readonly acknowledged: number[] = [];
  readonly bytes: Buffer[] = [];
  #stopped = false;

  /** Sends until the collector is gone. */
  async run(address: string): Promise<void> {
    const pusher = new Pusher(address);
    this.#stopped = false;
    const one = async (): Promise<void> => {
      while (!this.#stopped) {
        const id = this.bytes.push(makeRequest(this.bytes.length)) - 1;
        await this.#push(pusher, id).catch(() => {
          this.#stopped = true;
        });
      }
    };
    await Promise.all(Array.from({ length: SENDERS }, one));
    pusher.close();
  }

  async sendAgain(address: string, ids: readonly number[]): Promise<void> {
    const pusher = new Pusher(address);
    for (const id of ids) await this.#push(pusher, id);
    pusher.close();
  }

  async #push(pusher: Pusher, id: number): Promise<void> {
    expect(await pusher.push(this.bytes[id]!)).toEqual({ rejectedProfiles: 0, errorMessage: '' });
    this.acknowledged.push(id);
  }
}

function makeRequest(id: number): Buffer {
  const stacks = ['main@n;a@n', 'main@n;b@n;c@k', `main@n;f${id % 50}@n`];
  const text = stacks.map((stack) => `r${id}:${id + 1};${stack} ${EVENTS / stacks.length}`).join('\n');
  return encodeOtlp(profileFromText(text, { endMs: Date.now(), spanMs: 1000 }));
}

/** Request → its samples in the store. */
async function readStored(): Promise<Map<number, number>> {
  // the same question is answered from a cache for a second
  const { values } = await collector.query<{ values: { value: string; samples: number }[] }>(
    `/api/v1/values?label=process&range=all&limit=10000&question=${questions++}`,
  );
  return new Map(values.map(({ value, samples }) => [Number(value.slice(1)), samples]));
}

const ascending = (ids: Iterable<number>): number[] => [...ids].sort((a, b) => a - b);

it(
  `loses nothing that was acknowledged, in ${KILLS} kills`,
  async () => {
    const sender = new Sender();
    let lost = 0;
    for (let kill = 1; kill <= KILLS; kill++) {
      collector = await startCollectorProcess('--data', directory);
      const before = sender.acknowledged.length;
      const sending = sender.run(collector.grpc);
      await expect
        .poll(() => sender.acknowledged.length, { timeout: 60_000, interval: 5 })
        .toBeGreaterThan(before + 20 + ((kill * 37) % 80));
      // at some moment of the next transaction, or between it and its answers
      await setTimeout((kill * 17) % 110);
      await collector.end('SIGKILL');
      await sending;

      collector = await startCollectorProcess('--data', directory);
      const stored = await readStored();
      const missing = sender.acknowledged.filter((id) => !stored.has(id));
      lost += missing.length;
      console.log(
        `kill ${kill}: ${sender.bytes.length} requests sent, ${sender.acknowledged.length} acknowledged, ` +
          `${stored.size} stored, ${missing.length} acknowledged ones lost`,
      );
      expect(missing).toEqual([]);
      expect(new Set(stored.values())).toEqual(new Set([EVENTS]));

      const known = new Set(sender.acknowledged);
      const unanswered = [...sender.bytes.keys()].filter((id) => !known.has(id));
      await sender.sendAgain(collector.grpc, unanswered);
      const all = await readStored();
      expect(ascending(all.keys())).toEqual([...sender.bytes.keys()]);
      expect(new Set(all.values())).toEqual(new Set([EVENTS]));
      await collector.end(kill % 2 === 0 ? 'SIGTERM' : 'SIGKILL');
    }
    console.log(
      `${KILLS} kills: ${sender.bytes.length * EVENTS} samples sent and stored, ${lost} requests lost`,
    );
  },
  60_000 + KILLS * 60_000,
);
