import { describe, expect, it } from 'vitest';
import { readProfile } from '../../common/profile/formats/formats.ts';
import { initialState, onKey, type TopState } from './top-state.ts';
import { renderTop } from './top-view.ts';

const profile = readProfile(
  'a.folded',
  Buffer.from('app;main;parse 60\napp;main;write;vfs_write_[k] 30\nsh;fo\x1b[31mrk 10\n'),
);
const [UP, DOWN, LEFT, RIGHT, END] = ['\x1b[A', '\x1b[B', '\x1b[D', '\x1b[C', '\x1b[F'];
const press = (keys: string[], of = profile): TopState =>
  keys.reduce((state, key) => onKey(state, key, renderTop(of, state, 80, 24))!, initialState());
const view = (keys: string[], columns = 80, lines = 24) => renderTop(profile, press(keys), columns, lines);
const screen = (keys: string[], columns = 80, lines = 24) => view(keys, columns, lines).lines;
/** Names of the rows in sight, the selected one marked. */
const rows = (keys: string[], lines = 24): string[] => {
  const shown = view(keys, 80, lines);
  return shown.lines
    .map((line, i) => (i === shown.selectedLine ? `> ${line.slice(25)}` : line.slice(25)))
    .slice(2, -1)
    .filter((line) => line !== '');
};

describe('the screen of top', () => {
  it('shows self, total and kernel, the busiest first', () => {
    const lines = screen([]);
    expect(lines[0]).toBe('everyframe top: 100 samples in 0 s, user    70%, kernel    30%');
    expect(lines.slice(2, 5)).toEqual([
      '    60%     60%      0%  parse()',
      '    30%     30%     30%  vfs_write()',
      '    10%     10%      0%  fo?[31mrk',
    ]);
  });

  it('sorts by self, total, kernel, name, and self again', () => {
    expect(screen(['s'])[2]).toBe('     0%     90%     30%  main()');
    expect(screen(['s', 's'])[2]).toBe('     0%     90%     30%  main()');
    expect(rows(['s', 's', 's'])).toEqual(['> fo?[31mrk', 'main()', 'parse()', 'vfs_write()', 'write()']);
    expect(screen(['s', 's', 's', 's'])).toEqual(screen([]));
  });

  it.each([
    [80, 24],
    [40, 6],
    [20, 2],
    [1, 1],
    [200, 60],
  ])('fits into %i×%i, whatever is shown', (columns, lines) => {
    for (const keys of [[], ['p'], ['t'], ['t', '\r'], ['/', 'x'], ['p', '\r', '\r', '\r']]) {
      const text = screen(keys, columns, lines);
      expect(text.length).toBeLessThanOrEqual(lines);
      expect(Math.max(...text.map((line) => Array.from(line).length))).toBeLessThanOrEqual(columns);
    }
  });

  it('filters by what is typed, and forgets it with Escape', () => {
    const keys = ['/', 'q', '\x7f', 'W', 'r', '\r'];
    expect(screen(keys)[1]).toMatch(/filter: Wr$/);
    expect(screen(keys).at(-1)).toMatch(/^1 of 2 /);
    expect(screen([...keys, '\x1b']).at(-1)).toMatch(/^1 of 5 /);
    expect(screen(['/', 'é', '\x1b[B'])[1]).toMatch(/filter: é_$/);
  });

  it('shows processes and stacks', () => {
    expect(screen(['p'])[2]).toBe('    90%     90%     30%  app (0)');
    expect(screen(['t'])[3]).toBe('    30%     30%     30%  app: vfs_write < write < main');
  });

  it('ends with q and Ctrl-C, the latter also while typing', () => {
    const shown = view([]);
    expect(onKey(initialState(), 'q', shown)).toBeUndefined();
    expect(onKey(press(['/', 'a']), '\x03', shown)).toBeUndefined();
  });
});

describe('the selection of top', () => {
  it('moves, stays in the list, and is in sight', () => {
    expect(rows([DOWN])[1]).toBe('> vfs_write()');
    expect(rows([UP])[0]).toBe('> parse()');
    expect(rows([END, DOWN]).at(-1)).toBe('> write()');
    expect(rows([END], 5)).toEqual(['main()', '> write()']);
    expect(rows([END, 'g'], 5)).toEqual(['> parse()', 'vfs_write()']);
    expect(rows(['\x1b[6~', '\x1b[5~', 'j', 'k'])[0]).toBe('> parse()');
  });

  it('stays on its row while rows move', () => {
    const state = press([DOWN]);
    const later = readProfile('a.folded', Buffer.from('app;vfs_write_[k] 90\napp;parse 60\napp;new 1\n'));
    const { lines, selectedLine } = renderTop(later, state, 80, 24);
    expect(lines[selectedLine]).toMatch(/vfs_write\(\)$/);
    expect(selectedLine).toBe(2);
  });
});

describe('going into a row', () => {
  const FUNCTIONS = ['> parse()', 'vfs_write()', 'main()', 'write()'];

  it("leads from processes to a process's functions, a function's stacks, a stack's frames", () => {
    expect(rows(['p', '\r'])).toEqual(FUNCTIONS);
    expect(screen(['p', '\r'])[1]).toMatch(/functions, by self {2}in app \(0\)$/);
    expect(rows(['p', '\r', DOWN, '\r'])).toEqual(['> app: vfs_write < write < main']);
    expect(screen(['p', '\r', DOWN, '\r', '\r']).slice(2, 5)).toEqual([
      '    30%     30%     30%  vfs_write()',
      '     0%     30%     30%  write()',
      '     0%     90%     30%  main()',
    ]);
    expect(rows(['p', '\r', DOWN, '\r', '\r', '\r'])).toEqual(['> vfs_write()', 'write()', 'main()']);
  });

  it('and back again to the row that was entered', () => {
    expect(rows(['p', DOWN, RIGHT, LEFT])).toEqual(['app (0)', '> sh (0)']);
    expect(rows(['p', '\r', DOWN, '\r', '\x7f'])).toEqual(['parse()', '> vfs_write()', 'main()', 'write()']);
    expect(rows(['p', '\r', DOWN, '\r', '\x1b', '\x1b'])).toEqual(['> app (0)', 'sh (0)']);
    expect(rows([LEFT])).toHaveLength(5);
  });

  it('shows the same samples in another view, and all of them in its own', () => {
    expect(rows(['p', DOWN, '\r', 't'])).toEqual(['> sh: fo?[31mrk']);
    expect(rows(['p', DOWN, '\r', 'p'])).toHaveLength(2);
    expect(rows(['p', '\r', 'f'])).toEqual(FUNCTIONS);
  });

  it('does nothing where there is no row', () => {
    expect(screen(['/', 'z', 'z', 'z', '\r', '\r']).at(-1)).toMatch(/^0 of 0 /);
    expect(press(['/', 'z', 'z', 'z', '\r', '\r']).scopes).toEqual([]);
  });

  it('shows no rows of a process that is gone', () => {
    const state = press(['p', '\r']);
    expect(renderTop(readProfile('a.folded', Buffer.from('sh 1\n')), state, 80, 24).names).toEqual([]);
  });

  it('has the last line of the log instead of the keys, without its control characters', () => {
    const { lines } = renderTop(profile, initialState(), 40, 24, '[12:00:00] WARN: a\x1b[2Jb');
    expect(lines).toHaveLength(24);
    expect(lines.at(-1)).toBe('[12:00:00] WARN: a?[2Jb');
  });
});

describe('on narrow terminals', () => {
  it.each([80, 40, 20])('no line is wider than %i columns, and no key is cut', (columns) => {
    const { lines } = renderTop(profile, initialState(), columns, 24);
    for (const line of lines) expect(Array.from(line).length).toBeLessThanOrEqual(columns);
    expect(lines.at(-1)).toMatch(
      /^1 of \d+( {2}(\? help|q quit|enter in|bksp out|s sort|\/ filter|i PID|p f t views|space pause))*$/,
    );
    if (columns >= 40) expect(lines.at(-1)).toMatch(/\? help {2}q quit/);
  });

  it('explain their keys at ?', () => {
    const { lines } = renderTop(profile, press(['?']), 80, 24);
    expect(lines.join('\n')).toMatch(/only the process with this ID/);
    expect(lines.length).toBeLessThanOrEqual(24);
    for (const line of lines) expect(Array.from(line).length).toBeLessThanOrEqual(80);
    expect(press(['?', 'x']).isHelp).toBe(false);
  });
});

it('shows one process by its ID, and all again', () => {
  expect(screen(['i', '7', '\r'])[1]).toMatch(/in PID 7$/);
  expect(rows(['i', '7', '\r'])).toEqual([]);
  expect(rows(['i', '0', '\r'])).toHaveLength(5);
  expect(press(['i', '7', '\r', 'i', '\r']).scopes).toEqual([]);
  expect(press(['i', '7', '\r', LEFT]).scopes).toEqual([]);
});
