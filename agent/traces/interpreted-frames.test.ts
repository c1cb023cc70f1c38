import { describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { NamedRuntimeFrame } from '../interpreters/runtime-frames.ts';
import { InterpretedFrames } from './interpreted-frames.ts';

const WORDS = {
  pid: toPid(7),
  execId: 1,
  startBoottimeNs: 5n,
  head: 1,
  operandLow: 2,
  low: 3,
  high: 4,
};

const at = (line: number): NamedRuntimeFrame => ({
  frameType: 'v8js',
  lines: [{ name: 'run', file: '/app/a.js', line, column: line, startLine: line }],
});

/** Lines of one frame that is asked for six times, where naming it says these, and how often it was named. */
function linesOf(...answers: number[]): { lines: number[]; names: number } {
  const frames = new InterpretedFrames();
  let names = 0;
  const name = (): NamedRuntimeFrame => at(answers[Math.min(names++, answers.length - 1)]!);
  const lines = Array.from({ length: 6 }, () => frames.of(WORDS, name).lines[0]!.line);
  return { lines, names };
}

describe('a frame of a runtime', () => {
  it('is named once', () => {
    expect(linesOf(12)).toEqual({ lines: [12, 12, 12, 12, 12, 12], names: 1 });
  });

  it('is named again where its place could not be read', () => {
    expect(linesOf(0, 12)).toEqual({ lines: [0, 12, 12, 12, 12, 12], names: 2 });
    expect(linesOf(0, 0, 12)).toEqual({ lines: [0, 0, 12, 12, 12, 12], names: 3 });
  });

  it('is left alone where it has none', () => {
    expect(linesOf(0)).toEqual({ lines: [0, 0, 0, 0, 0, 0], names: 3 });
  });
});
