import { flameGraphResponse } from '../../collector/api/responses.ts';
import { buildFlameTree } from '../../collector/query/flame/flame-tree.ts';
import { LeafSums } from '../../collector/query/flame/leaf-sums.ts';
import { readWindow } from '../../collector/query/window.ts';
import { MemoryStore } from '../../collector/store/memory/memory-store.ts';
import { CPU_TYPE } from '../../collector/store/stored-type.ts';
import type { FlameGraphResponse } from '../../common/flame/tree-answer.ts';
import { parseFilter } from '../../common/profile/filters/filter.ts';
import { profileFromText } from './synthetic-profile.ts';

/** What the API answers for the stacks of a text (see profileFromText). */
export async function responseFromText(text: string, process?: string): Promise<FlameGraphResponse> {
  const endMs = Date.UTC(2026, 0, 1);
  const now = (): number => endMs;
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  store.append(profileFromText(text, { endMs, spanMs: 10_000 }));
  const range = { fromMs: endMs - 60_000, toMs: endMs + 1 };
  const where = process === undefined ? '' : `process=${process}`;
  const sums = new LeafSums();
  const filter = { ...range, where: parseFilter(where) };
  const { parts, ...window } = await readWindow(store, filter, 120, { leaves: sums });
  const graph = { ...window, type: CPU_TYPE, range };
  return flameGraphResponse({ ...graph, tree: buildFlameTree(parts), leaves: sums.leaves });
}
