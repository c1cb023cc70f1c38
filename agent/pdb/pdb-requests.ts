/** Reads what foreign assemblies say of their lines, in a worker. */
import { answerFirst } from '../workers/answer-first.ts';
import type { WorkHandler } from '../workers/protocol.ts';
import { type PdbAnswer, type PdbRequest, PdbService } from './pdb-service.ts';

export function createPdbHandler(): WorkHandler<PdbRequest[], PdbAnswer[]> {
  const service = new PdbService();
  return { handle: (assemblies) => answerFirst(assemblies, (assembly) => service.resolve(assembly)) };
}
