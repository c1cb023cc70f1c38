/** Events at each node or below it. */
export function sumSubtrees(parents: Uint32Array, selfCounts: Float64Array): Float64Array {
  const totals = selfCounts.slice();
  for (let node = totals.length - 1; node > 0; node--) totals[parents[node]!]! += totals[node]!;
  return totals;
}
