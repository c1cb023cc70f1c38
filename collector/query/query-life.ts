/** How long a query may take, and who waits for it: it ends between two parts of the store that it reads. */
import { PartView } from '../store/part-view.ts';
import type { SeriesTable } from '../store/series-table.ts';
import type {
  RowQuery,
  Rows,
  SamplePart,
  Stacks,
  Store,
  SummedStacks,
  TimeRange,
  TypedRange,
} from '../store/store.ts';

const MAX_QUERY_MS = 60_000;
/** At a time, those that wait for the database included. */
const MAX_QUERIES = 32;

type ReadStore = Pick<Store, 'parts' | 'stats' | 'types'>;

/** The query was ended; the message says why. */
export class QueryEnded extends Error {
  override name = 'QueryEnded';
}

/** Queries under way. */
export class QueryLives {
  readonly #maxMs: number;
  #running = 0;

  constructor(maxMs = MAX_QUERY_MS) {
    this.#maxMs = maxMs;
  }

  /**
   * @param isWanted whether anybody still waits for the answer
   * @throws QueryEnded, and what `run` throws
   */
  async run<T>(store: ReadStore, isWanted: () => boolean, run: (store: ReadStore) => Promise<T>): Promise<T> {
    if (this.#running >= MAX_QUERIES)
      throw new QueryEnded(`${MAX_QUERIES} questions are being answered: ask again later`);
    const endMs = performance.now() + this.#maxMs;
    const check = (): void => {
      if (performance.now() > endMs)
        throw new QueryEnded(`this takes more than ${this.#maxMs / 1000} s: ask for a shorter time`);
      if (!isWanted()) throw new QueryEnded('nobody waits for the answer any more');
    };
    this.#running++;
    try {
      return await run(withCheck(store, check));
    } finally {
      this.#running--;
    }
  }
}

function withCheck(store: ReadStore, check: () => void): ReadStore {
  return {
    stats: () => store.stats(),
    types: (range) => store.types(range),
    async parts(range: TypedRange) {
      check();
      return (await store.parts(range)).map((part) => new CheckedPart(part, check));
    },
  };
}

class CheckedPart extends PartView {
  readonly #check: () => void;

  constructor(part: SamplePart, check: () => void) {
    super(part);
    this.#check = check;
  }

  override async series(): Promise<SeriesTable> {
    this.#check();
    return await this.part.series();
  }

  override async stacks(): Promise<Stacks> {
    this.#check();
    return await this.part.stacks();
  }

  override async rows(query: RowQuery): Promise<Rows> {
    this.#check();
    return await this.part.rows(query);
  }

  override async countSamples(range: TimeRange): Promise<number> {
    this.#check();
    return await this.part.countSamples(range);
  }

  isWithin(range: TimeRange): boolean {
    return this.part.isWithin?.(range) ?? false;
  }

  summed(range: TimeRange): SummedStacks | undefined {
    this.#check();
    return this.part.summed?.(range);
  }
}
