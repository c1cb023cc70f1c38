import { type FlameModel, subtreeOf } from '../../../common/flame/flame-model.ts';
import { compilePattern } from '../../../common/profile/filters/pattern.ts';

export interface SearchResult {
  /** 1 for each frame that matches. */
  frames: Uint8Array;
  /** Nodes that match, and the samples under them: nested matches count once. */
  nodes: number;
  samples: number;
}

export type Matcher = (name: string) => boolean;

/**
 * `/regular expression/` (case-sensitive unless it ends in `/i`), or a text that names contain in any case.
 *
 * @returns undefined for an empty search, or the reason why the expression is not one
 */
export function parseSearch(text: string): Matcher | { error: string } | undefined {
  const expression = /^\/(.+)\/(i?)$/.exec(text);
  if (expression !== null) {
    try {
      const pattern = compilePattern(expression[1]!, { ignoreCase: expression[2] === 'i' });
      return (name) => pattern.test(name);
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  }
  const needle = text.trim().toLowerCase();
  return needle === '' ? undefined : (name) => name.toLowerCase().includes(needle);
}

/** What matches at and under `root`. */
export function search(model: FlameModel, matcher: Matcher, root: number): SearchResult {
  const frames = Uint8Array.from(model.names, (name) => (matcher(name) ? 1 : 0));
  // Per node: 0 outside the root, 1 inside, 2 inside and at or under a match.
  const state = new Uint8Array(model.count);
  let nodes = 0;
  let samples = 0;
  for (let node = root; node < model.count; node++) {
    const above = node === root ? 1 : state[model.parent[node]!]!;
    if (above === 0) continue;
    const matches = frames[model.frame[node]!] === 1;
    if (matches) nodes++;
    if (matches && above === 1) samples += model.total[node]!;
    state[node] = matches ? 2 : above;
  }
  return { frames, nodes, samples };
}

/**
 * The match after `node` (before it for a step of -1), from the largest to the smallest and around again.
 *
 * @returns undefined if nothing matches
 */
export function nextMatch(
  model: FlameModel,
  found: SearchResult,
  root: number,
  node: number | undefined,
  step: 1 | -1,
): number | undefined {
  const inside = subtreeOf(model, root);
  const matches = Array.from({ length: model.count }, (_, each) => each)
    .filter((each) => inside[each] === 1 && found.frames[model.frame[each]!] === 1)
    .sort((a, b) => model.total[b]! - model.total[a]! || a - b);
  const at = node === undefined ? -1 : matches.indexOf(node);
  if (at === -1) return matches.at(step === 1 ? 0 : -1);
  return matches[(at + step + matches.length) % matches.length];
}
