import type { SeriesTable } from './series-table.ts';
import type { RowQuery, Rows, SamplePart, Stacks, TimeRange } from './store.ts';

/**
 * A part as somebody wants to see it: what a subclass does not override is the part's own. What is known of
 * its rows without reading them (`isWithin`, `summed`) is left out: it may hold no longer.
 */
export abstract class PartView implements SamplePart {
  protected readonly part: SamplePart;

  constructor(part: SamplePart) {
    this.part = part;
  }

  get type(): SamplePart['type'] {
    return this.part.type;
  }

  get startMs(): number {
    return this.part.startMs;
  }

  get endMs(): number {
    return this.part.endMs;
  }

  get groups(): SamplePart['groups'] {
    return this.part.groups;
  }

  series(): Promise<SeriesTable> {
    return this.part.series();
  }

  stacks(): Promise<Stacks> {
    return this.part.stacks();
  }

  links(): ReturnType<SamplePart['links']> {
    return this.part.links();
  }

  rows(query: RowQuery): Promise<Rows> {
    return this.part.rows(query);
  }

  countSamples(range: TimeRange): Promise<number> {
    return this.part.countSamples(range);
  }
}
