/** Index from `from` on of the last value below index `to` that is not greater than `value`, -1 if there is none. */
export function lastAtOrBelow(
  ascending: Float64Array | Uint32Array,
  value: number,
  from = 0,
  to = ascending.length,
): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low > from ? low - 1 : -1;
}

/** How many of the first `count` indices are below what is looked for: `isBelow` holds for these and no other. */
export function countBelow(count: number, isBelow: (index: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBelow(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
