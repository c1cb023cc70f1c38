/**
 * Time on the clock: what a thread ran and what it waited, as a type beside those that are stored. A CPU sample stands for its
 * period, a wait for its time; both add up to the time that threads were there.
 */
import { attributesText, readAttributes } from '../../common/profile/model/attributes.ts';
import { NO_PERIOD, type ProfileType, typeKey } from '../../common/profile/model/profile-type.ts';
import { OFF_CPU, THREAD_STATE } from '../../common/profile/model/thread-types.ts';
import { PartView } from '../store/part-view.ts';
import type { SeriesGroup } from '../store/series.ts';
import { SeriesTable } from '../store/series-table.ts';
import type { RowQuery, Rows, SamplePart, Store, TypedRange } from '../store/store.ts';
import { CPU_TYPE } from '../store/stored-type.ts';

type TypedStore = Pick<Store, 'parts' | 'stats' | 'types'>;

export const WALL_TYPE: ProfileType = {
  sampleType: { type: 'wall_time', unit: 'nanoseconds' },
  ...NO_PERIOD,
};
const WALL = typeKey(WALL_TYPE);
const CPU = typeKey(CPU_TYPE);

/** The store with {@link WALL_TYPE} where it has CPU samples and waits, unless somebody sends that type. */
export function withWallTime(store: TypedStore): TypedStore {
  return {
    stats: () => store.stats(),
    async types(range) {
      const types = await store.types(range);
      const keys = new Set(types.map(typeKey));
      return keys.has(CPU) && keys.has(OFF_CPU) && !keys.has(WALL) ? [...types, WALL_TYPE] : types;
    },
    async parts(range) {
      const parts = await store.parts(range);
      return range.type === WALL && parts.length === 0 ? wallParts(store, range) : parts;
    },
  };
}

async function wallParts(store: TypedStore, range: TypedRange): Promise<SamplePart[]> {
  const ran = await store.parts({ ...range, type: CPU });
  const waited = await store.parts({ ...range, type: OFF_CPU });
  const parts = [...ran.map((part) => new RunningPart(part)), ...waited.map((part) => new WaitingPart(part))];
  return parts.sort((a, b) => a.startMs - b.startMs);
}

class WaitingPart extends PartView {
  override get type(): ProfileType {
    return WALL_TYPE;
  }
}

/** CPU samples as the time that they stand for, in the state of threads that run. */
class RunningPart extends PartView {
  override get type(): ProfileType {
    return WALL_TYPE;
  }

  override get groups(): readonly SeriesGroup[] {
    return this.part.groups.map(running);
  }

  override async series(): Promise<SeriesTable> {
    const table = await this.part.series();
    return new SeriesTable(table.groups.map(running), table.slice(0, table.length), table.length);
  }

  override async rows(query: RowQuery): Promise<Rows> {
    if (query.counts) return this.part.rows(query);
    const rows = await this.part.rows({ ...query, by: [...new Set([...query.by, 'group' as const])] });
    const { groups } = this.part;
    const weights = new Float64Array(rows.length);
    for (let row = 0; row < weights.length; row++)
      weights[row] = (rows.weights?.[row] ?? 1) * groups[rows.groups![row]!]!.periodNanos;
    return { ...rows, weights };
  }
}

const running = (group: SeriesGroup): SeriesGroup => ({
  ...group,
  periodNanos: 0,
  attributes: attributesText([...readAttributes(group.attributes), [THREAD_STATE, 'running']]),
});
