/** Turns places in the code of assemblies into lines of their sources, where there is a PDB. */
import type { SourcePlace } from '../../common/dotnet/portable-pdb.ts';
import { type LineKind, LineSource } from '../lines/line-source.ts';
import type { RootViews } from '../processes/root-views.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import type { PdbPlace } from './pdb-service.ts';

const ASSEMBLIES: LineKind<PdbPlace, SourcePlace> = {
  work: 'pdb',
  lacks: 'frames of its assembly have no lines',
  placeOf({ assembly }) {
    if (!assembly) return undefined;
    const { file, ...place } = assembly;
    return { file, place };
  },
  put(frame, index, place) {
    frame.lines[index] = { ...frame.lines[index]!, ...place };
  },
};

export class PdbLines extends LineSource<PdbPlace, SourcePlace> {
  constructor(workers: WorkerPool, views: RootViews) {
    super(ASSEMBLIES, workers, views);
  }
}
