import { describe, expect, it } from 'vitest';
import { readProfile } from '../common/profile/formats.ts';
import { initialState, onKey, renderTop, type TopState } from './top-view.ts';

const profile = readProfile(
  'a.folded',
  Buffer.from('app;main;parse 60\napp;main;write;vfs_write_[k] 30\nsh;fo\x1b[31mrk 10\n'),
);
const press = (keys: string[]): TopState => keys.reduce((state, key) => onKey(state, key)!, initialState());
const screen = (keys: string[], columns = 80, lines = 24) => renderTop(profile, press(keys), columns, lines);

describe('the screen of top', () => {
  it('shows self, total and kernel, the busiest first', () => {
    const lines = screen([]);
    expect(lines[0]).toBe('everyframe top: 100 samples in 0 s, user    70%, kernel    30%');
    expect(lines.slice(2, 5)).toEqual([
      '    60%     60%      0%  parse()',
      '    30%     30%     30%  vfs_write()',
      '    10%     10%      0%  fo?[31mrk',
    ]);
    expect(screen(['s'])[2]).toBe('     0%     90%     30%  main()');
  });

  it.each([
    [80, 24],
    [40, 6],
    [20, 2],
    [1, 1],
    [200, 60],
  ])('fits into %i×%i', (columns, lines) => {
    const text = screen([], columns, lines);
    expect(text.length).toBeLessThanOrEqual(lines);
    expect(Math.max(...text.map(({ length }) => length))).toBeLessThanOrEqual(columns);
  });

  it('filters by what is typed, and forgets it with Escape', () => {
    const keys = ['/', 'q', '\x7f', 'W', 'r', '\r'];
    expect(screen(keys)[1]).toMatch(/filter: Wr$/);
    expect(screen(keys).at(-1)).toMatch(/^2 of 2 /);
    expect(screen([...keys, '\x1b']).at(-1)).toMatch(/^5 of 5 /);
  });

  it('shows processes and stacks', () => {
    expect(screen(['p'])[2]).toBe('    90%     90%     30%  app (0)');
    expect(screen(['t'])[3]).toBe('    30%     30%     30%  app: vfs_write < write < main');
  });

  it('ends with q and Ctrl-C, the latter also while typing', () => {
    expect(onKey(initialState(), 'q')).toBeUndefined();
    expect(onKey(press(['/', 'a']), '\x03')).toBeUndefined();
  });
});
