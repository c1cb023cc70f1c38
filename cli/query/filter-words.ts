/** A filter as words behind a command: `query top process=node thread~^worker`. */
import { parseLength } from '../../common/base/length.ts';
import { FilterError, parseFilter } from '../../common/profile/filters/filter.ts';

/**
 * One filter of --where and words; a shell has taken the quotes of a value with blanks.
 *
 * @throws Error for a word that is none, which says what is meant
 */
export function whereOf(flag: string | undefined, words: readonly string[]): string | undefined {
  if (words.length === 0) return flag;
  return [...(flag === undefined ? [] : [flag]), ...words.map(toTerm)].join(' ');
}

function toTerm(word: string): string {
  const [, key, operator, values = ''] = /^\s*([^=!~\s]+)\s*(!=|!~|=|~)(.+)$/s.exec(word) ?? [];
  if (key === undefined) throw new Error(`"${word}" is not a filter: ${meantBy(word)}`);
  if (isFilter(word) || !/\s/.test(values)) return word;
  return `${key}${operator}${values.split(',').map(quoted).join(',')}`;
}

function isFilter(text: string): boolean {
  try {
    parseFilter(text);
    return true;
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    return false;
  }
}

const quoted = (value: string): string => `"${value.replace(/["\\]/g, '\\$&')}"`;

function meantBy(word: string): string {
  if (/^\d+$/.test(word)) return `is --limit ${word} meant, or pid=${word}?`;
  if (parseLength(word) !== undefined) return `is --range ${word} meant?`;
  const example = /^[\w./-]+$/.test(word) ? `process=${word}` : 'process=node';
  return `write KEY=VALUE, such as ${example} (everyframe query labels lists the keys)`;
}
