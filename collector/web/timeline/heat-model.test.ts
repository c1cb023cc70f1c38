import { describe, expect, it } from 'vitest';
import { cellSpan, columnSpan, moveCell, topOf } from './heat-model.ts';

const grid = { fromMs: 1000, toMs: 61_000, columns: 60, rows: 10 };

describe('the heat map', () => {
  it('knows the time of a cell and of its column', () => {
    expect(cellSpan(grid, 25)).toEqual({ fromMs: 3500, toMs: 3600 });
    expect(columnSpan(grid, 25)).toEqual({ fromMs: 3000, toMs: 4000 });
    expect(columnSpan({ ...grid, toMs: 1010 }, 599).toMs).toBeGreaterThan(1009);
  });

  it('has room above the busiest cell in its key', () => {
    expect([0, 0.02, 1, 2, 2.4, 63, 99, 100].map((peak) => topOf(peak))).toEqual([
      1, 0.025, 1.25, 2.5, 2.5, 80, 100, 125,
    ]);
  });

  it('has no more CPUs in its key than there are', () => {
    expect([0, 0.02, 1, 2, 2.2].map((peak) => topOf(peak, 2))).toEqual([1, 0.025, 1.25, 2, 2]);
  });

  it('is walked by arrow keys, within its edges', () => {
    expect(moveCell(grid, undefined, 'ArrowLeft')).toBe(590);
    expect(moveCell(grid, 25, 'ArrowRight')).toBe(35);
    expect(moveCell(grid, 25, 'ArrowUp')).toBe(24);
    expect(moveCell(grid, 5, 'ArrowLeft')).toBe(5);
    expect(moveCell(grid, 599, 'ArrowDown')).toBe(599);
    expect(moveCell(grid, 5, 'Enter')).toBeUndefined();
  });
});
