import type { TypeAnswer } from '../api/types.ts';

/** What files of earlier versions hold, and what is shown until an answer says otherwise. */
export const CPU_SAMPLES: TypeAnswer = {
  name: 'cpu',
  type: 'samples',
  unit: 'count',
  periodType: 'cpu',
  periodUnit: 'nanoseconds',
  kind: 'rate',
  shown: 'sum',
};
