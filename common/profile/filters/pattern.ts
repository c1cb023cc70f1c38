/**
 * Regular expressions that a person wrote, in a filter, a transform, a search or a link that somebody else sent. They are
 * matched in time linear in the text (RE2's way), so that none of them can stop the collector or the page: see
 * docs/decisions/collector/regular-expressions.md.
 */
import { RE2JS } from 're2js';

export interface Pattern {
  /** Whether it matches anywhere in the text; of longer texts the first MAX_TEXT characters are looked at. */
  test(text: string): boolean;
}

/** An expression that can't be read; the message says why. */
export class PatternError extends Error {
  override name = 'PatternError';
}

const MAX_SOURCE = 1000;
/** Names of functions are far shorter; one text can't be stopped half-way. */
const MAX_TEXT = 16_384;

/**
 * @param source JavaScript's syntax, without what can't be matched in linear time
 * @throws PatternError
 */
export function compilePattern(source: string, { ignoreCase = false } = {}): Pattern {
  if (source.length > MAX_SOURCE)
    throw new PatternError(
      `a regular expression of ${source.length} characters; at most ${MAX_SOURCE} are read`,
    );
  try {
    const flags = ignoreCase ? RE2JS.CASE_INSENSITIVE : 0;
    const compiled = RE2JS.compile(RE2JS.translateRegExp(source), flags);
    return { test: (text) => compiled.test(text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text) };
  } catch (error) {
    throw new PatternError(`"${source}" is not a regular expression: ${reasonOf(source, error as Error)}`);
  }
}

function reasonOf(source: string, { message }: Error): string {
  const found = /\(\?<?[=!]|\\[1-9]|\\k</.exec(source);
  if (found !== null) return `${found[0]}… (looking around and back-references) is not supported`;
  return message.replace('error parsing regexp: ', '').replaceAll('`', '');
}
