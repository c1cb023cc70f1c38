import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeRule } from '../rules/describe.ts';
import { Effect } from './code-reader.ts';
import { X86_64 } from './frame-state.ts';
import { InstructionReader } from './instruction.ts';
import { CodeWalk } from './walk.ts';

const START = 0x1000;

/** `0x1000 rsp+8 same`, a line an instruction; starts are offsets in the code. */
function walkOf(
  code: string,
  starts: readonly number[] = [0],
  { covered = (_: number): boolean => false, isCalled = true, sweeps = false } = {},
): string[] {
  const bytes = Buffer.from(code.replaceAll(/\s/g, ''), 'hex');
  const read = (at: number) =>
    at >= START && at < START + bytes.length ? { start: START, bytes } : undefined;
  const walk = new CodeWalk(X86_64, read, {
    covered,
    maxInstructions: 1000,
    maxGuesses: 1000,
    maxStarts: 100,
  });
  for (const start of starts) walk.addStart(START + start, isCalled);
  walk.run();
  if (sweeps) walk.sweep(START, START + bytes.length);
  return Array.from(walk.instructions(), ({ address, state }) => {
    const { cfa, fp } = describeRule(state.toRule(), 'x86_64');
    return `+${address - START} ${cfa} ${fp}`;
  });
}

describe('machine code without unwind information', () => {
  it('is followed through pushes, room on the stack, and the way back', () => {
    // push %rbp; push %rbx; sub $24,%rsp; nop; add $24,%rsp; pop %rbx; pop %rbp; ret
    expect(walkOf('55 53 4883ec18 90 4883c418 5b 5d c3')).toEqual([
      '+0 rsp+8 same',
      '+1 rsp+16 cfa-16',
      '+2 rsp+24 cfa-16',
      '+6 rsp+48 cfa-16',
      '+7 rsp+48 cfa-16',
      '+11 rsp+24 cfa-16',
      '+12 rsp+16 cfa-16',
      '+13 rsp+8 same',
    ]);
  });

  it('has its frame at rbp once the stack pointer is aligned or moved by a variable', () => {
    // push %rbp; mov %rsp,%rbp; and $-64,%rsp; sub %rax,%rsp; leave; ret
    expect(walkOf('55 4889e5 4883e4c0 4829c4 c9 c3')).toEqual([
      '+0 rsp+8 same',
      '+1 rsp+16 cfa-16',
      '+4 rsp+16 cfa-16',
      '+8 rbp+16 cfa-16',
      '+11 rbp+16 cfa-16',
      '+12 rsp+8 same',
    ]);
  });

  it('is followed along both ways of a branch', () => {
    // push %rbx; je +2; pop %rbx; ret; pop %rbx; ret
    expect(walkOf('53 7402 5b c3 5b c3')).toEqual([
      '+0 rsp+8 same',
      '+1 rsp+16 same',
      '+3 rsp+16 same',
      '+4 rsp+8 same',
      '+5 rsp+16 same',
      '+6 rsp+8 same',
    ]);
  });

  it('leads to the functions that it calls', () => {
    // call +1; ret; push %rbx; pop %rbx; ret
    expect(walkOf('e801000000 c3 53 5b c3')).toContain('+7 rsp+16 same');
  });

  it('does not go on behind the call of what never returns', () => {
    // push %rbx; call +3; push, of another function that nothing leads to; pop; ret; ud2
    expect(walkOf('53 e803000000 55 5d c3 0f0b')).toEqual([
      '+0 rsp+8 same',
      '+1 rsp+16 same',
      '+9 rsp+8 same',
    ]);
  });

  it('says nothing of a function that returns with another stack than it was called with', () => {
    expect(walkOf('53 53 5b c3')).toEqual([]);
  });

  it('says nothing of a function that is not called and jumps where others return, as threaded code does', () => {
    // mov $1,%eax; jmp *(%rbp)
    expect(walkOf('b801000000 ff6500', [0], { isCalled: false })).toEqual([]);
    // push %rbx; call of what never returns: ud2
    expect(walkOf('53 e800000000 0f0b', [0], { isCalled: false })).toHaveLength(3);
    // jmp *0(%rip): to a function of another file
    expect(walkOf('ff2500000000', [0], { isCalled: false })).toEqual(['+0 rsp+8 same']);
    // pop %rbx is missing; jmp, to a function that returns
    expect(walkOf('90 eb00 c3', [0, 3], { isCalled: false })).toHaveLength(3);
    expect(walkOf('90 ff6500 90 eb00 ff6500', [0, 4], { isCalled: false })).toEqual([]);
  });

  it('is found where nothing leads to it: behind what ends another function', () => {
    // ret; nop; push %rbx; pop %rbx; ret; zeros; jmp *%rax; ret
    expect(walkOf('c3 90 53 5b c3 0000 ffe0 c3', [0], { sweeps: true })).toEqual([
      '+0 rsp+8 same',
      '+2 rsp+8 same',
      '+3 rsp+16 same',
      '+4 rsp+8 same',
      '+9 rsp+8 same',
    ]);
  });

  it('goes on behind a jump through a table', () => {
    // push %rbx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax; pop %rbx; ret; nop; pop %rbx; ret
    const code = `53 48630482 4801d0 ffe0 5b c3 90 5b c3 ${'00'.repeat(32)}`;
    expect(walkOf(code, [], { sweeps: true })).toEqual([
      '+0 rsp+8 same',
      '+1 rsp+16 same',
      '+5 rsp+16 same',
      '+8 rsp+16 same',
      '+10 rsp+16 same',
      '+11 rsp+8 same',
      '+13 rsp+16 same',
      '+14 rsp+8 same',
    ]);
  });

  it('is none where bytes make no function', () => {
    // push %rbx; ret; what is not an instruction, up to where a function may begin: push %rbx; pop %rbx; ret
    const code = `53 c3 06 06 ${'06'.repeat(11)}c3 53 5b c3`;
    expect(walkOf(code, [], { sweeps: true }).map((line) => line.split(' ')[0])).toEqual([
      '+16',
      '+17',
      '+18',
    ]);
  });

  it('says nothing of a place to which two ways lead with different stacks', () => {
    // je +1; push %rbx; nop; ud2
    expect(walkOf('7401 53 90 0f0b')).toEqual(['+0 rsp+8 same', '+2 rsp+8 same']);
  });

  it('ends where an instruction is not understood, at covered code, and at the end of the code', () => {
    expect(walkOf('53 06 90')).toEqual(['+0 rsp+8 same']);
    expect(walkOf('53 90 90', [0], { covered: (at) => at >= START + 2 })).toEqual([
      '+0 rsp+8 same',
      '+1 rsp+16 same',
    ]);
    expect(walkOf('53 4883')).toEqual(['+0 rsp+8 same']);
  });

  it('leaves a lost frame pointer alone that was never saved', () => {
    // mov %rax,%rbp; ret
    expect(walkOf('4889c5 c3')).toEqual(['+0 rsp+8 same']);
  });

  it('of random bytes ends, in order, with rules that fit', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 300 }), fc.nat(299), (bytes, start) => {
        const lines = walkOf(Buffer.from(bytes).toString('hex'), [start]);
        const offsets = lines.map((line) => Number.parseInt(line.slice(1), 10));
        expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
      }),
      { numRuns: 500 },
    );
  });
});

describe('code that was made to be slow to follow', () => {
  /** How often the code was asked for: once for each instruction, since every piece is too short for the next. */
  function readsOf(bytes: Buffer): number {
    let reads = 0;
    const read = (address: number) => {
      reads++;
      const at = address - START;
      return at >= 0 && at < bytes.length
        ? { start: address, bytes: bytes.subarray(at, at + 14) }
        : undefined;
    };
    const walk = new CodeWalk(X86_64, read, {
      covered: () => false,
      maxInstructions: 100_000,
      maxGuesses: 1000,
      maxStarts: 100,
    });
    walk.addStart(START);
    walk.run();
    return reads;
  }

  const COUNT = 1000;

  /** Branches to `displacement` bytes into each of COUNT units behind them, and a byte that misaligns those. */
  function branchesInto(unit: string, displacement: number): Buffer {
    const size = unit.length / 2;
    const code = Buffer.from(`${'0f8400000000'.repeat(COUNT)}90${unit.repeat(COUNT)}c3`, 'hex');
    for (let i = 0; i < COUNT; i++) {
      const end = 6 * (i + 1);
      code.writeInt32LE(6 * COUNT + 1 + i * size + displacement - end, end - 4);
    }
    return code;
  }

  it('is not searched far for the end of a function', () => {
    // padding that never comes to an address that functions are aligned to; in each a call that ends where it ends
    expect(readsOf(branchesInto('0f1f84e8ffffff7f', 3))).toBeLessThan(60 * COUNT);
  });

  it('is not read on where prefixes never end', () => {
    const bytes = Buffer.alloc(100, 0x66);
    const reader = new InstructionReader(bytes, START);
    reader.read(0);
    expect(reader.effect).toBe(Effect.UNKNOWN);
    expect(reader.length).toBeLessThanOrEqual(16);
  });
});
