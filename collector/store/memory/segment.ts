import type { ProfileType } from '../../../common/profile/model/profile-type.ts';
import { roundTimes } from '../round-times.ts';
import { rowsByGroup } from '../rows-by-group.ts';
import type { RowQuery, Rows, SamplePart, TimeRange } from '../store.ts';
import { countable, countOf } from '../stored-type.ts';
import { StackDictionaries } from '../trees/stack-dictionaries.ts';
import type { StoredSample } from './append.ts';
import { SampleColumns } from './sample-columns.ts';

export const SEGMENT_MS = 60_000;

/**
 * The samples of one minute and one type with the dictionaries that only they need: dropping the segment frees both.
 * A minute with more samples than a segment may hold has several.
 */
export class Segment extends StackDictionaries implements SamplePart {
  readonly type: ProfileType;
  readonly startMs: number;
  readonly columns = new SampleColumns();
  /** See countOf. */
  samples = 0;

  constructor(type: ProfileType, startMs: number) {
    super();
    this.type = type;
    this.startMs = startMs;
  }

  get endMs(): number {
    return this.startMs + SEGMENT_MS;
  }

  override get bytes(): number {
    return super.bytes + this.columns.bytes;
  }

  push({ timeMs, node, series, cpu, weight, link }: StoredSample): void {
    this.columns.push(timeMs - this.startMs, node, series, cpu, weight, link);
    this.samples += countOf(this.type, weight);
  }

  async countSamples(range: TimeRange): Promise<number> {
    return this.columns.countSamples(range, this);
  }

  rows(query: RowQuery): Promise<Rows> {
    return rowsByGroup(this, query, async (bySeries) =>
      roundTimes(this.columns.select(countable(bySeries, this.type), this.startMs), query),
    );
  }
}
