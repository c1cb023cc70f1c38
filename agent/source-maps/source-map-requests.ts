/** Reads and decodes what foreign programs say of their scripts, in a worker thread. */
import type { WorkHandler } from '../workers/protocol.ts';
import { type SourceMapAnswer, type SourceMapRequest, SourceMapService } from './source-map-service.ts';

/** What others ask of the thread waits meanwhile. */
const MAX_BATCH_MS = 200;

/** Answers the first scripts of a request, one at least and as many as there is time for. */
export function createSourceMapHandler(): WorkHandler<SourceMapRequest[], SourceMapAnswer[]> {
  const service = new SourceMapService();
  return {
    handle(scripts) {
      const end = performance.now() + MAX_BATCH_MS;
      const answers: SourceMapAnswer[] = [];
      for (const script of scripts) {
        answers.push(service.resolve(script));
        if (performance.now() > end) break;
      }
      return answers;
    },
  };
}
