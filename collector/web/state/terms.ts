/** Filters as the page changes them; the API's own reader is the judge of what they mean. */
import { type Matcher, parseFilter } from '../../../common/profile/filters/filter.ts';
import { parseTransforms, type Transform } from '../../../common/profile/filters/transform-list.ts';
import { formatFilter } from './questions.ts';

export type Operator = '=' | '!=';

/** The terms of a filter that can't be read are none. */
export function readTerms(where: string): Matcher[] {
  try {
    return parseFilter(where);
  } catch {
    return [];
  }
}

/** The transforms of a text that can't be read are none, as the collector will say. */
export function readTransforms(text: string): Transform[] {
  try {
    return parseTransforms(text);
  } catch {
    return [];
  }
}

/** Values that a filter names for a label with an operator. */
export const valuesOf = (where: string, key: string, operator: Operator): string[] =>
  readTerms(where).flatMap((term) => (term.key === key && term.operator === operator ? term.values : []));

/** The filter without what it says of a label: what the label's own values are counted under. */
export const withoutKey = (where: string, key: string): string =>
  formatFilter(readTerms(where).filter((term) => term.key !== key));

/** Adds a value to what a filter names for a label, or takes it out. The opposite term loses it. */
export function toggleValue(where: string, key: string, operator: Operator, value: string): string {
  const opposite = operator === '=' ? '!=' : '=';
  const wanted = valuesOf(where, key, operator);
  const isThere = wanted.includes(value);
  const left = isThere ? wanted.filter((each) => each !== value) : [...wanted, value];
  const rest = readTerms(where).flatMap((term): Matcher[] => {
    if (term.key !== key || term.operator === '~' || term.operator === '!~') return [term];
    if (term.operator !== opposite) return [];
    const values = term.values.filter((each) => each !== value);
    return values.length === 0 ? [] : [{ ...term, values }];
  });
  return formatFilter(left.length === 0 ? rest : [...rest, { key, operator, values: left }]);
}
