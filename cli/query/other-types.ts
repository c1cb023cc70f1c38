import { ask, type CollectorFlags, type Query } from './query-client.ts';
import { otherTypesText, type TypesAnswer } from './query-text.ts';

/** Lines for an answer without any samples where nobody asked for a type: others may be what is looked for. */
export async function explainNothing(
  collector: CollectorFlags,
  query: Query,
  answer: { samples?: number },
): Promise<string[]> {
  if (query['type'] !== undefined || answer.samples !== 0) return [];
  const { from, to, range, where } = query;
  return otherTypesText(await ask<TypesAnswer>(collector, 'types', { from, to, range, where }));
}
