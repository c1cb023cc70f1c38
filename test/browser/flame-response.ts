import { flameGraphResponse } from '../../collector/api/responses.ts';
import type { FlameGraphResponse } from '../../collector/api/types.ts';
import { Queries } from '../../collector/query/queries.ts';
import { MemoryStore } from '../../collector/store/memory-store.ts';
import { profileFromText } from './synthetic-profile.ts';

/** What the API answers for the stacks of a text (see profileFromText). */
export async function responseFromText(text: string, process?: string): Promise<FlameGraphResponse> {
  const endMs = Date.UTC(2026, 0, 1);
  const now = (): number => endMs;
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  store.append(profileFromText(text, { endMs, spanMs: 10_000 }));
  return flameGraphResponse(await new Queries(store, now).flameGraph('60s', process));
}
