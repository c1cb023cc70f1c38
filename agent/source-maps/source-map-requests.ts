/** Reads and decodes what foreign programs say of their scripts, in a worker. */
import { answerFirst } from '../workers/answer-first.ts';
import type { WorkHandler } from '../workers/protocol.ts';
import { type SourceMapAnswer, type SourceMapRequest, SourceMapService } from './source-map-service.ts';

export function createSourceMapHandler(): WorkHandler<SourceMapRequest[], SourceMapAnswer[]> {
  const service = new SourceMapService();
  return { handle: (scripts) => answerFirst(scripts, (script) => service.resolve(script)) };
}
