import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const hasGcc = spawnSync('gcc', ['--version']).status === 0;

describe.skipIf(!hasGcc)('show symbol', () => {
  const folder = mkdtempSync(join(tmpdir(), 'show-symbol-'));
  const program = join(folder, 'a');
  let [work, main] = ['', ''];
  beforeAll(() => {
    const source = join(folder, 'a.c');
    writeFileSync(
      source,
      'int work(int x) { return x * 3; }\nint main(int c, char **v) { return work(c); }\n',
    );
    execFileSync('gcc', ['-O0', '-g', source, '-o', program]);
    const symbols = execFileSync('nm', [program], { encoding: 'utf8' });
    const addressOf = (name: string) =>
      `0x${Number.parseInt(symbols.match(`(\\w+) T ${name}\n`)![1]!, 16).toString(16)}`;
    [work, main] = [addressOf('work'), addressOf('main')];
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const show = (args: string[], input = '', env: Record<string, string> = {}) =>
    spawnSync(join(ROOT, 'bin/everyframe'), ['show', 'symbol', ...args], {
      encoding: 'utf8',
      input,
      env: { ...process.env, ...env },
      maxBuffer: 1 << 26,
    });
  const names = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { address: string; frames: { function: string }[] })
      .map(({ address, frames }) => `${address} ${frames[0]?.function}`);

  it('answers in their order, too, where threads share many addresses', () => {
    const given = Array.from({ length: 30_000 }, (_, i) => [work, main, `0x${i.toString(16)}`][i % 3]!);
    const { stdout, stderr } = show([program, '-', '--json'], given.join('\n'));
    expect(stderr).toBe('');
    const lines = names(stdout);
    expect(lines).toHaveLength(given.length);
    expect(lines.filter((line, i) => i % 3 === 0 && line !== `${work} work`)).toEqual([]);
    expect(lines.filter((line, i) => i % 3 === 1 && line !== `${main} main`)).toEqual([]);
    expect(lines.filter((line, i) => i % 3 === 2 && !line.startsWith(`${given[i]} `))).toEqual([]);
  });

  it('answers in the order of the addresses', () => {
    const { stdout, stderr } = show([program, main, '0x1', work, main, '--json']);
    expect(stderr).toBe('');
    expect(names(stdout)).toEqual([`${main} main`, '0x1 undefined', `${work} work`, `${main} main`]);
  });

  it('reads addresses of standard input behind those that are given', () => {
    const { stdout, stderr } = show(['--json', program, work, '-'], `${main}\n\n ${work}\n${Number(main)}`);
    expect(stderr).toBe('');
    expect(names(stdout)).toEqual([`${work} work`, `${main} main`, `${work} work`, `${main} main`]);
  });

  it('says which line is not an address', () => {
    const { stderr, status } = show([program, '-'], 'main\n');
    expect(stderr).toContain(
      'the address of standard input main is not an address: write 0x… or a decimal number',
    );
    expect(status).toBe(1);
  });

  it('starts with the code that V8 made of it at build time', () => {
    const telling = join(folder, 'telling.cjs');
    writeFileSync(
      telling,
      `const vm = require('node:vm');
      vm.Script = class extends vm.Script {
        constructor(...all) { super(...all); console.error('rejected:', this.cachedDataRejected); }
      };`,
    );
    const { stdout, stderr } = show([program, main], '', { NODE_OPTIONS: `--require ${telling}` });
    expect(stderr).toBe('rejected: false\n');
    expect(stdout).toBe(show([program, main]).stdout);
  });

  it('prints as one bundled file what it prints from its modules', () => {
    const modules = spawnSync(process.execPath, [
      join(ROOT, 'dist/cli/main.js'),
      'show',
      'symbol',
      program,
      main,
    ]);
    expect(show([program, main]).stdout).toBe(`${modules.stdout}`);
    const help = spawnSync(process.execPath, [join(ROOT, 'dist/cli/main.js'), 'show', 'symbol', '--help']);
    expect(show(['--help']).stdout).toBe(`${help.stdout}`);
  });
});
