/** Long work on the main loop, in slices: between two of them the event loop goes on. */

const SLICE_MS = 10;
/** How many items are taken between two looks at the clock. */
const ITEMS_PER_LOOK = 16;

export const nextTurn = (): Promise<void> => new Promise(setImmediate);

/** A machine with many CPUs has tens of thousands of groups of samples. */
export async function inSlices(count: number, take: (i: number) => void): Promise<void> {
  let end = performance.now() + SLICE_MS;
  for (let i = 0; i < count; i++) {
    if (i % ITEMS_PER_LOOK === 0 && performance.now() >= end) {
      await nextTurn();
      end = performance.now() + SLICE_MS;
    }
    take(i);
  }
}

/** Returns what the steps return: synchronously if the first slice is enough. */
export function runInSlices<T>(steps: Generator<void, T>): T | Promise<T> {
  const end = performance.now() + SLICE_MS;
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (performance.now() >= end) return nextTurn().then(() => runInSlices(steps));
  }
}
