import { describe, expect, it } from 'vitest';
import { CPU_SAMPLES } from '../../../common/flame/shown-type.ts';
import type { TimelineAnswer } from '../../api/types.ts';
import { assignColours, MAX_AREAS, plotColumns, stackTimeline } from './timeline-data.ts';
import { moveBrush, snapBrush } from './timeline-keys.ts';

/** Steps of one second, 50 ms of CPU time an event. */
function answer(groups: Record<string, number[]>, other?: number[]): TimelineAnswer {
  const steps = Object.values(groups)[0]!.length;
  const rest = other ?? new Array<number>(steps).fill(0);
  const sum = (counts: number[]): number => counts.reduce((a, b) => a + b, 0);
  const samples = Object.values(groups).reduce((total, counts) => total + sum(counts), sum(rest));
  return {
    fromMs: 10_000,
    toMs: 10_000 + steps * 1000,
    type: CPU_SAMPLES,
    steps,
    samples,
    cpuNanos: samples * 50e6,
    stepNanos: rest.map((count, step) =>
      Object.values(groups).reduce((nanos, counts) => nanos + counts[step]! * 50e6, count * 50e6),
    ),
    groupCount: Object.keys(groups).length,
    groups: Object.entries(groups).map(([value, counts]) => ({ value, samples: sum(counts), counts })),
    other: rest,
  };
}

describe('stackTimeline', () => {
  it('tells how many CPUs were busy, from the first sample on', () => {
    const data = stackTimeline(answer({ node: [0, 20, 40], sh: [0, 0, 20] }));
    expect(data.areas).toEqual([
      { value: 'node', share: 0.75, heights: [0, 1, 2] },
      { value: 'sh', share: 0.25, heights: [0, 0, 1] },
    ]);
    expect(data.mean).toBe(2);
    expect(data.stepMs).toBe(1000);
  });

  it('says so of each step, by the rate at which it was sampled', () => {
    const stepNanos = [1e9, 1e9];
    const { areas } = stackTimeline({ ...answer({ node: [20, 100] }), cpuNanos: 2e9, stepNanos });
    expect(areas[0]!.heights).toEqual([1, 1]);
  });

  it('takes what is beyond the palette together', () => {
    const groups = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`p${i}`, [20, 0]]));
    const { areas } = stackTimeline(answer(groups, [0, 20]));
    expect(areas).toHaveLength(MAX_AREAS + 1);
    expect(areas.at(-1)).toEqual({ value: undefined, share: 5 / 13, heights: [4, 1] });
  });

  it('has nothing to draw without samples', () => {
    const data = stackTimeline(answer({ none: [0, 0] }));
    expect(data.areas[0]!.share).toBe(0);
    expect(data.mean).toBe(0);
  });
});

describe('plotColumns', () => {
  it('stacks: each column is what lies at and below its area', () => {
    const columns = plotColumns(stackTimeline(answer({ node: [0, 20], sh: [20, 60] })));
    expect(columns.slice(0, 3)).toEqual([
      [10_000, 11_000, 12_000],
      [1, 4, 4],
      [1, 3, 3],
    ]);
    expect(columns).toHaveLength(1 + MAX_AREAS + 1);
    expect(columns.at(-1)).toEqual([0, 0, 0]);
  });
});

describe('assignColours', () => {
  it('lets groups keep their places while they are shown', () => {
    const first = assignColours(new Map(), ['a', 'b', 'c']);
    expect([...first]).toEqual([
      ['a', 0],
      ['b', 1],
      ['c', 2],
    ]);
    expect(assignColours(first, ['d', 'c', 'a'])).toEqual(
      new Map([
        ['c', 2],
        ['a', 0],
        ['d', 1],
      ]),
    );
  });
});

describe('the brush', () => {
  const overview = { fromMs: 10_000, toMs: 20_000 };
  const move = (key: string, brush?: [number, number], isShift = false) => {
    const given = brush && { fromMs: brush[0], toMs: brush[1] };
    const moved = moveBrush(overview, 500, given, key, isShift);
    return moved && [moved.fromMs, moved.toMs];
  };

  it('begins at the end, moves within the timeline, and grows with Shift', () => {
    expect(move('ArrowLeft')).toEqual([19_000, 20_000]);
    expect(move('ArrowLeft', [19_000, 20_000])).toEqual([18_500, 19_500]);
    expect(move('ArrowRight', [19_000, 20_000])).toEqual([19_000, 20_000]);
    expect(move('PageUp', [12_000, 13_000])).toEqual([10_000, 11_000]);
    expect(move('Home', [12_000, 13_000])).toEqual([10_000, 11_000]);
    expect(move('End', [12_000, 13_000])).toEqual([19_000, 20_000]);
    expect(move('ArrowRight', [12_000, 13_000], true)).toEqual([12_000, 13_500]);
    expect(move('ArrowLeft', [12_000, 12_500], true)).toEqual([12_000, 12_500]);
    expect(move('x', [12_000, 13_000])).toBeUndefined();
  });

  it('takes whole steps in either direction', () => {
    expect(snapBrush(overview, 500, 12_300, 11_200)).toEqual({ fromMs: 11_000, toMs: 12_500 });
    expect(snapBrush(overview, 500, 5_000, 90_000)).toEqual(overview);
    expect(snapBrush(overview, 500, 25_000, 26_000)).toBeUndefined();
  });
});
