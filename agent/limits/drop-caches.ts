import { runInSlices } from '../../common/base/slices.ts';
import { collectBetweenWork } from '../base/collect-garbage.ts';
import type { Native } from '../base/native.ts';

/** Each made again as it is needed, at the cost of some CPU time. */
export interface Caches {
  store: { dropHalf(): Generator<void, void> };
  frames: { forget(): void };
  maker: { forget(): void };
  workers: { release(): void };
  native: Pick<Native, 'beginCollection' | 'releaseFreeMemory'>;
}

/** In turns: all at once takes too long. */
export async function dropCaches({ store, frames, maker, workers, native }: Caches): Promise<void> {
  await runInSlices(store.dropHalf());
  frames.forget();
  maker.forget();
  workers.release();
  await collectBetweenWork(() => native.beginCollection());
  native.releaseFreeMemory();
}
