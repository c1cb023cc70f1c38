import { describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { NamedRuntimeFrame } from '../runtimes/runtime-frames.ts';
import { InterpretedFrames } from './interpreted-frames.ts';

const PROCESS = { pid: toPid(7), execId: 1, startBoottimeNs: 5n };
/** Of frames of two words each, from the second on. */
const U32_PAIRS = Uint32Array.of(9, 9, 9, 9, 0xf000_0002, 0xf100_0000, 3, 0xffff_ffff);
const AT = 4;

const at = (line: number): NamedRuntimeFrame => ({
  frameType: 'v8js',
  linesFrom: 'source-map',
  lines: [{ name: 'run', file: '/app/a.js', line, column: line, startLine: line }],
});

function frameOf(
  frames: InterpretedFrames,
  name: () => NamedRuntimeFrame,
  process = PROCESS,
  u32Pairs = U32_PAIRS,
) {
  return frames.find(process, u32Pairs, AT) ?? frames.add(process, u32Pairs, AT, name());
}

/** Lines of one frame that is asked for six times, half a second apart, where naming it says these; how often it was named. */
function linesOf(...answers: number[]): { lines: number[]; names: number } {
  let nowMs = 0;
  const frames = new InterpretedFrames({}, () => (nowMs += 500));
  let names = 0;
  const name = (): NamedRuntimeFrame => at(answers[Math.min(names++, answers.length - 1)]!);
  const lines = Array.from({ length: 6 }, () => frameOf(frames, name).lines[0]!.line);
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

  it('is not named again at once, and may be another one until then', () => {
    let nowMs = 0;
    const frames = new InterpretedFrames({}, () => nowMs);
    const see = (line: number) => [
      frameOf(frames, () => at(line)).lines[0]!.line,
      frames.isForNow(PROCESS, U32_PAIRS, AT),
    ];
    for (let i = 0; i < 5; i++) expect(see(0)).toEqual([0, true]);
    nowMs = 300;
    expect(see(12)).toEqual([12, false]);
    expect(see(13)).toEqual([12, false]);
  });

  it('is left alone where it has none', () => {
    expect(linesOf(0)).toEqual({ lines: [0, 0, 0, 0, 0, 0], names: 3 });
  });

  it('is named once where it is in no source', () => {
    const frames = new InterpretedFrames();
    let names = 0;
    for (let i = 0; i < 3; i++) {
      frameOf(frames, () => {
        names++;
        return { ...at(0), lines: [{ ...at(0).lines[0]!, isPlaceless: true }] };
      });
    }
    expect(names).toBe(1);
  });

  it('is named as often as it takes while its process does not answer', () => {
    let nowMs = 0;
    const frames = new InterpretedFrames({}, () => nowMs);
    const late = (line: number) => ({ ...at(line), isForNow: true });
    const seen = [late(0), late(0), late(0), late(0), at(0), at(12), at(13)].map((named, i) => {
      nowMs = i < 5 ? 0 : 500;
      const { line } = frameOf(frames, () => named).lines[0]!;
      return [line, frames.isForNow(PROCESS, U32_PAIRS, AT)];
    });
    expect(seen).toEqual([...Array(4).fill([0, true]), [0, true], [12, false], [12, false]]);
  });

  it('has a name once its process answers, if it has no line', () => {
    const frames = new InterpretedFrames();
    const named = (name: string) => ({ ...at(0), lines: [{ ...at(0).lines[0]!, name }] });
    frameOf(frames, () => ({ ...named('[it did not answer]'), isForNow: true }));
    expect(frameOf(frames, () => named('known')).lines[0]!.function).toBe('known');
    expect(frameOf(frames, () => named('other')).lines[0]!.function).toBe('known');
  });

  it('is another one where any of its words, or its execution, differs', () => {
    const frames = new InterpretedFrames();
    let line = 0;
    const name = (): NamedRuntimeFrame => at(++line);
    const lines = [0, 1, 2, 3].map((k) => {
      const u32Pairs = U32_PAIRS.slice();
      u32Pairs[AT + k]! ^= 0x8000_0000;
      return frameOf(frames, name, PROCESS, u32Pairs).lines[0]!.line;
    });
    for (const other of [{ pid: toPid(8) }, { execId: 2 }, { startBoottimeNs: 6n }])
      lines.push(frameOf(frames, name, { ...PROCESS, ...other }).lines[0]!.line);
    expect(lines).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(frameOf(frames, name).lines[0]!.line).toBe(8);
    expect(frameOf(frames, name).lines[0]!.line).toBe(8);
  });
});
