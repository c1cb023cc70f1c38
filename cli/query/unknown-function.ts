import { closestNames } from '../../common/base/closest-names.ts';
import { ask, type CollectorFlags, type Query } from './query-client.ts';

/** Of all functions, as many as an answer may have. */
const MAX_NAMES = 10_000;

/**
 * Where no sample has the function that was asked for.
 *
 * @throws Error that names functions that may have been meant
 */
export async function refuseUnknown(
  collector: CollectorFlags,
  query: Query,
  { functionSamples, samples }: { functionSamples: number; samples: number },
): Promise<void> {
  if (functionSamples > 0) return;
  const name = String(query['function']);
  if (samples === 0)
    throw new Error(`the filter matched nothing in this period, and so no function "${name}"`);
  const { functions } = await ask<{ functions: { name: string }[] }>(collector, 'top', {
    ...query,
    ...{ function: undefined, steps: undefined, limit: MAX_NAMES, sort: 'total' },
  });
  const near = closestNames(name, [...new Set(functions.map((one) => one.name))]);
  const hint = near.length > 0 ? `; did you mean\n  ${near.join('\n  ')}` : ': `query top` lists names';
  throw new Error(`no function is called "${name}" in these samples${hint}`);
}
