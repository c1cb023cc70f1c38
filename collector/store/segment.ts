import { roundTimes } from './round-times.ts';
import { rowsByGroup } from './rows-by-group.ts';
import { SampleColumns } from './sample-columns.ts';
import { StackDictionaries } from './stack-dictionaries.ts';
import type { RowQuery, Rows, SamplePart } from './store.ts';

export const SEGMENT_MS = 60_000;

/**
 * The samples of one minute with the dictionaries that only they need: dropping the segment frees both.
 * A minute with more samples than a segment may hold has several.
 */
export class Segment extends StackDictionaries implements SamplePart {
  readonly startMs: number;
  readonly columns = new SampleColumns();

  constructor(startMs: number) {
    super();
    this.startMs = startMs;
  }

  get endMs(): number {
    return this.startMs + SEGMENT_MS;
  }

  override get bytes(): number {
    return super.bytes + this.columns.bytes;
  }

  rows(query: RowQuery): Promise<Rows> {
    return rowsByGroup(this, query, async (bySeries) =>
      roundTimes(this.columns.select(bySeries, this.startMs), query),
    );
  }
}
