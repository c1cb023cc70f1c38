/**
 * Indices of the first `count` keys by ascending key; of equal keys the higher index first. `known`: the same of fewer
 * keys, when the others were not there yet.
 */
export function sortedOrder(
  keys: Float64Array,
  count: number,
  known: Uint32Array = new Uint32Array(0),
): Uint32Array {
  if (known.length === 0) return sortAll(keys, count);
  if (known.length === count) return known;
  const first = known.length;
  const added = sortAll(keys.subarray(first), count - first);
  const order = new Uint32Array(count);
  for (let i = 0, k = 0, a = 0; i < count; i++) {
    const isAdded = a < added.length && (k === first || keys[first + added[a]!]! <= keys[known[k]!]!);
    order[i] = isAdded ? first + added[a++]! : known[k++]!;
  }
  return order;
}

function sortAll(keys: Float64Array, count: number): Uint32Array {
  const order = new Uint32Array(count);
  let highest = 0;
  let isSorted = true;
  for (let i = 0; i < count; i++) {
    order[i] = i;
    highest = Math.max(highest, keys[i]!);
    if (i > 0 && keys[i]! <= keys[i - 1]!) isSorted = false;
  }
  if (isSorted) return order;
  // key and index fit into one exact number: sorting numbers takes a fraction of what calling a function does
  if (highest < Number.MAX_SAFE_INTEGER / count - 1) {
    const packed = new Float64Array(count);
    for (let i = 0; i < count; i++) packed[i] = keys[i]! * count + (count - 1 - i);
    packed.sort();
    for (let i = 0; i < count; i++) order[i] = count - 1 - (packed[i]! % count);
    return order;
  }
  return order.sort((a, b) => keys[a]! - keys[b]! || b - a);
}
