/** What can be filtered and grouped by, as text. */

import { valueFormatter } from '../../common/profile/model/value-format.ts';
import { isCpu, leftOut, type ShownType } from './query-text.ts';

export interface LabelsAnswer {
  labels: string[];
  attributes: string[];
}

/** One a line; attributes behind the labels that all samples have. */
export const labelsText = ({ labels, attributes }: LabelsAnswer, limit: number): string[] => {
  const all = [...labels, ...attributes];
  return [...all.slice(0, limit), ...leftOut(all.length - limit, 'labels')];
};

export interface ValuesAnswer {
  type?: ShownType;
  label: string;
  samples: number;
  valueCount: number;
  values: { value: string; samples: number }[];
}

export function valuesText({ type, label, samples, valueCount, values }: ValuesAnswer): string[] {
  if (values.length === 0) return [`no samples of this time and filter have a ${label}`];
  const cell = isCpu(type) ? String : valueFormatter(type).cell;
  const share = (part: number): string => `${samples === 0 ? '0.0' : ((100 * part) / samples).toFixed(1)}%`;
  return [
    `${(isCpu(type) ? 'samples' : type.type).padStart(10)}   share  ${label}`,
    ...values.map(
      (each) =>
        `${cell(each.samples).padStart(10)}  ${share(each.samples).padStart(6)}  ${each.value || '(none)'}`,
    ),
    ...leftOut(valueCount - values.length, 'values'),
  ];
}
