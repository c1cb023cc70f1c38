import type { SourceAnswer } from '../../api/types.ts';

export interface SourceRow {
  /** From 1. */
  line: number;
  /** Of the file; without one the function's name. */
  text: string;
  /** That the line's samples are in, '' where it has none. */
  function: string;
  self: number;
  total: number;
}

/** Every line of the text; without one the lines that have samples. */
export function listSourceRows({ text, counts }: Pick<SourceAnswer, 'text' | 'counts'>): SourceRow[] {
  if (text === undefined) return counts.map((count) => ({ ...count, text: count.function }));
  const byLine = new Map(counts.map((count) => [count.line, count]));
  return text.lines.map((content, i) => {
    const line = text.firstLine + i;
    return { self: 0, total: 0, function: '', ...byLine.get(line), line, text: content };
  });
}

/** The nearest row with samples in a direction, or the one itself. */
export function nextWithSamples(rows: readonly SourceRow[], current: number, step: 1 | -1): number {
  for (let at = current + step; at >= 0 && at < rows.length; at += step) if (rows[at]!.total > 0) return at;
  return current;
}
