import { useState } from 'preact/hooks';
import { formatSpan } from '../../../common/flame/format.ts';
import type { TimeRange } from '../../store/store.ts';
import type { UrlState } from '../state/url-state.ts';
import type { ViewProperties } from '../state/view-properties.ts';

type Properties = ViewProperties & { now: TimeRange; base: TimeRange };

/** What the shown time is compared with, and how to choose it. */
export function DiffBase({ state, change, now, base, timeline }: Properties) {
  const brush = state.brush;
  // what is being typed outlives an answer that comes meanwhile
  const [draft, setDraft] = useState<string>();
  return (
    <div class="diff-base">
      <p>
        <b>{formatSpan(now)}</b> compared with <b class="base-name">{formatSpan(base)}</b>
      </p>
      {brush !== undefined && (
        <button
          type="button"
          class="button"
          title="the selected time becomes the baseline; then select another (Shift and drag does it at once)"
          onClick={() =>
            change({ base: brush, brush: undefined, overview: state.overview ?? spanOf(timeline) })
          }
        >
          Use selection as baseline
        </button>
      )}
      {state.base !== undefined && (
        <button type="button" class="button" onClick={() => change({ base: undefined })}>
          Compare with previous period
        </button>
      )}
      <label>
        Compare with filter{' '}
        <input
          class="base-filter"
          placeholder={placeholder(state)}
          spellcheck={false}
          value={draft ?? state.baseWhere ?? ''}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onChange={(event) => {
            change({ baseWhere: event.currentTarget.value.trim() || undefined });
            setDraft(undefined);
          }}
        />
      </label>
    </div>
  );
}

/** What an empty field stands for. */
function placeholder({ where, baseWhere }: Pick<UrlState, 'where' | 'baseWhere'>): string {
  return where === '' || baseWhere === '' ? 'none; for example process=node' : `same: ${where}`;
}

const spanOf = ({ fromMs, toMs }: TimeRange): TimeRange => ({
  fromMs: Math.round(fromMs),
  toMs: Math.round(toMs),
});
