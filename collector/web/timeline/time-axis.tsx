import { formatClock } from '../../../common/flame/format.ts';
import type { TimeRange } from '../../store/store.ts';
import { timeTicks } from './time-ticks.ts';

/** The times below a picture whose width is a stretch of time. */
export function TimeAxis({ span, width }: { span: TimeRange; width: number }) {
  const length = span.toMs - span.fromMs;
  return (
    <div class="time-axis" aria-hidden="true">
      {timeTicks(span, width).map((ms) => (
        <span key={ms} style={{ left: `${((ms - span.fromMs) / length) * 100}%` }}>
          {formatClock(ms, length)}
        </span>
      ))}
    </div>
  );
}
