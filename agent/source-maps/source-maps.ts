/** Turns places in scripts into places in the sources that they were made from, where there is a source map. */
import { type LineKind, LineSource } from '../lines/line-source.ts';
import type { RootViews } from '../processes/root-views.ts';
import type { FrameLine } from '../traces/frame.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import type { OriginalPlace, ScriptPlace } from './script-map.ts';

const SCRIPTS: LineKind<ScriptPlace, OriginalPlace> = {
  work: 'source-map',
  lacks: 'frames of that script keep the names and lines that it has without its source map',
  placeOf({ name, file, line, column, startLine, startColumn = 0 }) {
    return line === 0 ? undefined : { file, place: { name, line, column, startLine, startColumn } };
  },
  put(frame, index, { name, ...place }) {
    const before = textOf(frame.lines[index]!);
    frame.lines[index] = { ...place, function: name, systemName: '' };
    frame.generated = frame.generated ? `${frame.generated}, ${before}` : before;
  },
};

const textOf = ({ file, line, column }: FrameLine): string => `${file}:${line}:${column}`;

export class SourceMaps extends LineSource<ScriptPlace, OriginalPlace> {
  constructor(workers: WorkerPool, views: RootViews) {
    super(SCRIPTS, workers, views);
  }
}
