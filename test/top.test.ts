import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';

const PROGRAM = ['bin', 'everyframe'].join('/');
const canRun = process.getuid?.() === 0 && spawnSync('python3', ['--version']).status === 0;
if (!canRun) console.log('skipped: top in a terminal (it needs root and python3)');

/** Pairs of a text to wait for and the keys to press then. */
const inTerminal = (...steps: [string, string][]) => inTerminalWith({}, ...steps);
const inTerminalWith = (env: Record<string, string>, ...steps: [string, string][]) =>
  spawnSync('python3', ['test/fixtures/run-in-pty.py', ...steps.flat(), '--', PROGRAM, 'top'], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  }).stdout;

const LEFT_SCREEN = '\x1b[?1049l';
/** A mistake of ours, at the signal's moment. */
const CRASH = `data:text/javascript,process.on('SIGUSR2',()=>{throw%20new%20Error('made%20to%20fail')})`;

/** A selected row: there are samples. */
const SELECTED = '\x1b[7m';

/** Each screen's lines, without what marks the selected one. */
const screensOf = (text: string): string[][] =>
  text.split('\x1b[H').map((screen) => {
    const lines = screen.split('\x1b[J')[0]!.split('\r\n');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: sequences of the terminal
    return lines.map((line) => line.replace(/\x1b\[[0-9]*[mK]|\r/g, ''));
  });

describe.skipIf(!canRun)('everyframe top', () => {
  it('shows processes in 80×24, and leaves the terminal as it was', () => {
    const text = inTerminal([SELECTED, 'p'], ['processes, by self', 'q']);
    expect(text).toMatch(/exit 0, terminal as before\n$/);
    expect(text.split('\u001b[?1049h')).toHaveLength(2);
    expect(text.split('\u001b[?1049l')).toHaveLength(2);
    const screens = screensOf(text);
    const last = screens.at(-1)!;
    expect(last[1]).toMatch(/self +total +kernel +processes, by self/);
    for (const lines of screens.slice(1)) expect(lines.length).toBeLessThanOrEqual(24);
  });

  it('goes into a row and out again, and follows the size of the terminal', () => {
    const text = inTerminal(
      [SELECTED, 'p'],
      ['processes, by self', '\r'],
      ['functions, by self  in ', '\r'],
      ['stacks, by self  in ', '\r'],
      ['frames, innermost first  in ', '\x1b[D'],
      ['stacks, by self  in ', 'resize 50x10'],
      ['\x1b[H', 'resize 100x30'],
      ['? help  q quit  enter in  bksp out  s sort  / filter  i PID  p f t views', '\x1bOD'],
      ['functions, by self  in ', 's'],
      ['functions, by total  in ', '\x03'],
    );
    expect(text).toMatch(/exit 0, terminal as before\n$/);
    const screens = screensOf(text);
    // 50 columns: the last line, the keys, is cut
    const small = screens.filter((lines) => lines.length === 10);
    expect(small.length).toBeGreaterThan(0);
    expect(Math.max(...small[0]!.map((line) => Array.from(line).length))).toBeLessThanOrEqual(50);
    expect(screens.some((lines) => lines.length === 30)).toBe(true);
  });

  it('leaves the terminal as it was at SIGTERM', () => {
    const text = inTerminal([SELECTED, 'signal TERM']);
    expect(text).toMatch(/exit 0, terminal as before\n$/);
    expect(text.split(LEFT_SCREEN)).toHaveLength(2);
  });

  it('leaves the terminal as it was when it crashes, and says why on the main screen', () => {
    const text = inTerminalWith({ NODE_OPTIONS: `--import=${CRASH}` }, [SELECTED, 'signal USR2']);
    expect(text).toMatch(/exit 70, terminal as before\n$/);
    expect(text.split(LEFT_SCREEN)).toHaveLength(2);
    expect(text.split(LEFT_SCREEN)[1]).toContain('Error: made to fail');
  });

  it('says what to use where there is no terminal', () => {
    const { status, stderr } = spawnSync(PROGRAM, ['top'], { encoding: 'utf8', input: '' });
    expect(status).toBe(1);
    expect(stderr).toMatch(/needs a terminal: use "everyframe record/);
  });
});
