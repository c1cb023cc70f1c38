/** Frames of interpreted functions out of a recording: one runtime's, inlined ones expanded. */
import type { FrameType } from '../../common/profile/model/profile.ts';
import type { Recording } from '../support/recording.ts';

export interface ScriptFrame {
  name: string;
  /** Without its folder. */
  file: string;
  line: number;
}

/** Leaf first, of each sample of a process. */
export function scriptStacks(
  recording: Recording,
  pid: number,
  frameType: FrameType,
): { threadName: string; frames: ScriptFrame[]; count: number }[] {
  return recording.profiles.flatMap((profile) =>
    profile.samples
      .filter((sample) => profile.processes[sample.process]!.pid === pid)
      .map((sample) => ({
        threadName: sample.threadName,
        count: sample.value,
        frames: [...profile.stacks[sample.stack]!].flatMap((at) => {
          const { frameType: type, lines } = profile.locations[at]!;
          if (type !== frameType) return [];
          return lines.map(({ func, line }) => {
            const { name, filename } = profile.functions[func]!;
            return { name, file: filename.split('/').at(-1)!, line };
          });
        }),
      })),
  );
}

/** Samples by a text made of their frames; those without one are left out. */
export function countBy(
  stacks: { frames: ScriptFrame[]; count: number }[],
  textOf: (frames: ScriptFrame[]) => string | undefined,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { frames, count } of stacks) {
    const text = textOf(frames);
    if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + count);
  }
  return counts;
}

export const sum = (counts: Map<string, number>): number => [...counts.values()].reduce((x, y) => x + y, 0);
