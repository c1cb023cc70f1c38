/** A binary heap. */
export class LargestFirst<T extends { readonly total: number }> {
  readonly #heap: T[] = [];

  get length(): number {
    return this.#heap.length;
  }

  push(item: T): void {
    const heap = this.#heap;
    let at = heap.push(item) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (heap[above]!.total >= item.total) break;
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = item;
  }

  pop(): T | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && heap[child + 1]!.total > heap[child]!.total) child++;
      if (heap[child]!.total <= last.total) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return top;
  }
}
