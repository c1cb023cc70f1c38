import type { Matcher } from '../../common/profile/filters/filter.ts';
import type { SampleFilter } from '../store/store.ts';

const MAX_FILTER = 60;

/** Makes a name that any file system takes. */
const clean = (text: string): string =>
  text
    .replaceAll(/[^\w.=+-]+/g, '-')
    .replaceAll(/^[-.]+|-+$/g, '')
    .slice(0, MAX_FILTER);

const SHORT: Readonly<Record<Matcher['operator'], string>> = {
  '=': '=',
  '!=': '=not-',
  '~': '=like-',
  '!~': '=unlike-',
};

/**
 * A name that says what is in a file, so that two exports do not meet: when it begins, in UTC, how long it is, and what was
 * filtered by, such as `everyframe-20260131T120000Z-60s-process=node.pb.gz`.
 */
export function exportName(
  { fromMs, toMs, where }: SampleFilter,
  isTransformed: boolean,
  ending: string,
): string {
  const start = new Date(fromMs)
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(/[-:]/g, '');
  const terms = where.map(
    ({ key, operator, values }) => key.replace(/^@/, '') + SHORT[operator] + values.join('+'),
  );
  const filter = clean(terms.join('-'));
  const parts = [
    'everyframe',
    start,
    `${Math.round((toMs - fromMs) / 1000)}s`,
    filter,
    isTransformed ? 'transformed' : '',
  ];
  return `${parts.filter((part) => part !== '').join('-')}.${ending}`;
}
