/** The entry's index in a table that has each key once; made and added where the key is new. */
export function intern<T>(indices: Map<string, number>, key: string, table: T[], make: () => T): number {
  let index = indices.get(key);
  if (index === undefined) {
    index = table.push(make()) - 1;
    indices.set(key, index);
  }
  return index;
}
