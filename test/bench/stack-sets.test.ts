import { execFileSync } from 'node:child_process';
import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { compare, countStacks, Places, readPerfScript } from './stack-sets.ts';

describe('stacks of two profilers', () => {
  const shares = (ours: [string, number][], theirs: [string, number][]): number[] => {
    const found = compare(new Map(ours), new Map(theirs));
    return [found.identical, found.endsEarly, found.weEndEarly, found.only, found.weOnly];
  };

  it('are identical where both saw the same ones', () => {
    expect(shares([['a;b;c', 3]], [['a;b;c', 100]])).toEqual([1, 0, 0, 0, 0]);
  });

  it('differ where one leaves out the root, with or without saying so', () => {
    expect(shares([['a;b;c', 1]], [['a;b', 1]])).toEqual([0, 0.5, 0, 0, 0.5]);
    expect(shares([['a;[cut: no rule]', 1]], [['a;b', 1]])).toEqual([0, 0, 0.5, 0.5, 0]);
  });

  it('differ where only one has a stack, by its share of that one', () => {
    expect(
      shares(
        [
          ['a;c', 3],
          ['b;c', 1],
        ],
        [['a;c', 5]],
      ),
    ).toEqual([0.875, 0, 0, 0, 0.125]);
  });

  it('do not end early where a frame only begins with the same letters', () => {
    expect(shares([['a+0x12', 1]], [['a+0x1', 1]])).toEqual([0, 0, 0, 0.5, 0.5]);
  });

  it('count from one moment to before another', () => {
    const seen = [1n, 2n, 3n].map((time) => ({ time, stack: 'a' }));
    expect([...countStacks(seen, 1n, 3n)]).toEqual([['a', 2]]);
  });
});

describe("perf script's text", () => {
  it('gives the user frames of one process, as the files have their addresses', () => {
    const main = process.execPath;
    const symbol = /^([0-9a-f]+) ([0-9a-f]+) T (node_module_register)$/m.exec(
      execFileSync('nm', ['-DS', '--defined-only', main], { encoding: 'utf8', maxBuffer: 1 << 28 }),
    )!;
    const places = new Places(process.pid);
    const offset = symbol[1]!.replace(/^0+/, '');
    const leaf = places.leaf('node', BigInt(`0x${offset}`));
    expect(leaf).toBe('node:node_module_register');
    const sample = (pid: number): string =>
      `${pid} \n\t ffffffff81000000 do_idle ([kernel.kallsyms])\n\t   10 [unknown] (/no/such/library.so)\n\t   20 f+0x1 (/no/such/library.so)\n\tffffffffffffffff [unknown] ([unknown])\n`;
    const stacks = readPerfScript(`${sample(7)}\n${sample(8)}\n${sample(7)}`, 7, places);
    expect([...stacks]).toEqual([['library.so:?;library.so+0x20;[not copied]', 2]]);
  });
});
