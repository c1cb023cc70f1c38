/** Where in a source file the samples are: by line, whichever of its functions they are in. */

import type { StackCounts } from '../store/store.ts';
import { sumGroups } from '../store/trees/sum-groups.ts';
import { sumSubtrees } from '../store/trees/sum-subtrees.ts';

export interface LineCount {
  /** From 1. */
  line: number;
  /** Function that the line's samples are in; of several the one that was met first. */
  function: string;
  /** Events in the line itself, and in it or what it called: a recursion counts once. */
  self: number;
  total: number;
}

export interface FileCounts {
  /** Events whose stack holds any frame of the file, whether or not its line is known. */
  samples: number;
  /** In their order. */
  lines: LineCount[];
}

/** The line that a reader looks for: of the function's lines the one with the most events; 0 for none. */
export function hottestLine({ lines }: FileCounts, name: string): number {
  const own = lines.filter((entry) => entry.function === name);
  let hottest: LineCount | undefined;
  for (const entry of own.length > 0 ? own : lines)
    if (hottest === undefined || entry.total > hottest.total) hottest = entry;
  return hottest?.line ?? 0;
}

/** Groups of nodes: frames of other files, those of the file without a line, then its lines. */
const [ELSEWHERE, ANYWHERE, FIRST_LINE] = [0, 1, 2];

/** @param file as frames name it */
export function countLines(parts: readonly StackCounts[], file: string): FileCounts {
  const lines = new Map<number, LineCount>();
  let samples = 0;
  for (const { frames, parents, nodeFrames, selfCounts } of parts) {
    const found: LineCount[] = [];
    const groups = groupFrames(frames, file, lines, found);
    if (groups === undefined) continue;
    const tree = { parents, selfCounts, totals: sumSubtrees(parents, selfCounts) };
    const byLine = sumGroups(
      tree,
      Uint32Array.from(nodeFrames, (frame) => groups[frame] ?? ELSEWHERE),
      FIRST_LINE + found.length,
    );
    for (const [i, entry] of found.entries()) {
      entry.self += byLine.self[FIRST_LINE + i]!;
      entry.total += byLine.total[FIRST_LINE + i]!;
    }
    const isInFile = Uint32Array.from(nodeFrames, (frame) =>
      (groups[frame] ?? ELSEWHERE) === ELSEWHERE ? 0 : 1,
    );
    samples += sumGroups(tree, isInFile, 2).total[1]!;
  }
  const seen = [...lines.values()].filter(({ total }) => total > 0);
  return { samples, lines: seen.sort((a, b) => a.line - b.line) };
}

/** Group of each frame, and the entries of lines in their order; undefined where no frame is of the file. */
function groupFrames(
  frames: StackCounts['frames'],
  file: string,
  lines: Map<number, LineCount>,
  found: LineCount[],
): Uint32Array | undefined {
  const groupOfLine = new Map<number, number>();
  const groups = new Uint32Array(frames.length);
  let isThere = false;
  for (const [id, frame] of frames.entries()) {
    if (frame.file !== file || frame.kind === 'process') continue;
    isThere = true;
    const { line, name } = frame;
    if (line === undefined) {
      groups[id] = ANYWHERE;
      continue;
    }
    let group = groupOfLine.get(line);
    if (group === undefined) {
      const entry = lines.get(line) ?? { line, function: name, self: 0, total: 0 };
      lines.set(line, entry);
      group = FIRST_LINE + found.push(entry) - 1;
      groupOfLine.set(line, group);
    }
    groups[id] = group;
  }
  return isThere ? groups : undefined;
}
