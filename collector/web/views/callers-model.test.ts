import { expect, it } from 'vitest';
import { findZoom, kindOf, nameOf, zoomKeyOf } from '../../../common/flame/flame-model.ts';
import { profileFromText } from '../../../test/browser/synthetic-profile.ts';
import type { CallersAnswer } from '../../api/types.ts';
import { ROUTES } from '../../api/v1.ts';
import { ReceiverStats } from '../../ingest/receiver-stats.ts';
import { SourceFiles } from '../../source/source-files.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { modelOf } from './callers-model.ts';

const END_MS = Date.UTC(2026, 0, 1);
const STACKS = Array.from(
  { length: 40 },
  (_, i) => `p:1;main@n;f@n;a${i % 4}@n;b${i % 8}@n;c${i}@n ${i + 1}`,
);

async function callees(zoom: string, limit: number): Promise<CallersAnswer> {
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now: () => END_MS });
  store.append(profileFromText(STACKS.join('\n'), { endMs: END_MS, spanMs: 1000 }));
  const status = { stats: new ReceiverStats(), store, listen: { grpc: '', http: '' }, startedMs: 0 };
  const context = { store, status, sources: SourceFiles.NONE, now: () => END_MS };
  const parameters = new URLSearchParams({ function: 'f', limit: String(limit), callees_zoom: zoom });
  return (await ROUTES['/api/v1/callers']!.run(parameters, context)) as CallersAnswer;
}

it('reaches every callee by zooming into what is not loaded, however few boxes an answer has', async () => {
  const seen = new Map<string, number>();
  const asked = new Set<string>();
  const wanted = [''];
  for (const zoom of wanted) {
    if (asked.has(zoom)) continue;
    asked.add(zoom);
    const answer = await callees(zoom, 8);
    const model = modelOf(answer, answer.callees);
    expect(nameOf(model, 0)).toBe('f');
    expect(findZoom(model, zoom), `box of ${zoom}`).toBeDefined();
    for (let node = 1; node < model.count; node++) {
      if (kindOf(model, node) === 'other')
        wanted.push(zoomKeyOf(model, model.parent[node]!), zoomKeyOf(model, node));
      else if (nameOf(model, node).startsWith('c')) seen.set(nameOf(model, node), model.self[node]!);
    }
  }
  expect(seen.size).toBe(40);
  expect([...seen.values()].reduce((a, b) => a + b, 0)).toBe(820);
});

it('refuses a zoom that is not a key', async () => {
  await expect(callees('x y', 8)).rejects.toThrow('callees_zoom is "x y"');
});
