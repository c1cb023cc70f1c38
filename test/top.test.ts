import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';

const PROGRAM = ['bin', 'everyframe'].join('/');
const canRun = process.getuid?.() === 0 && spawnSync('python3', ['--version']).status === 0;
if (!canRun) console.log('skipped: top in a terminal (it needs root and python3)');

/** Pairs of a text to wait for and the keys to press then. */
const inTerminal = (...steps: [string, string][]) =>
  spawnSync('python3', ['test/fixtures/run-in-pty.py', ...steps.flat(), '--', PROGRAM, 'top'], {
    encoding: 'utf8',
  }).stdout;

describe.skipIf(!canRun)('everyframe top', () => {
  it('shows processes in 80×24, and leaves the terminal as it was', () => {
    const text = inTerminal([' samples in ', 'p'], ['processes, by self', 'q']);
    expect(text).toMatch(/exit 0, terminal as before\n$/);
    expect(text.split('\u001b[?1049h')).toHaveLength(2);
    expect(text.split('\u001b[?1049l')).toHaveLength(2);
    const screens = text.split('\u001b[H').map((screen) => screen.split('\u001b[J')[0]!.split('\u001b[K'));
    const last = screens.at(-1)!;
    expect(last[1]).toMatch(/self +total +kernel +processes, by self/);
    for (const lines of screens.slice(1)) expect(lines.length).toBeLessThanOrEqual(24);
  });

  it('says what to use where there is no terminal', () => {
    const { status, stderr } = spawnSync(PROGRAM, ['top'], { encoding: 'utf8', input: '' });
    expect(status).toBe(1);
    expect(stderr).toMatch(/needs a terminal: use "everyframe record/);
  });
});
