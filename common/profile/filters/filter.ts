/**
 * Filters: `process=node,python3 host!=db1 thread~"^worker" cpu=0 kind=kernel`. All terms must hold; the values of
 * one term are alternatives. `~` is an unanchored regular expression.
 */
import { PROGRAM_LABEL } from '../model/sample-attributes.ts';
import { compilePattern, type Pattern } from './pattern.ts';

export type Operator = '=' | '!=' | '~' | '!~';

export interface Matcher {
  key: string;
  operator: Operator;
  values: readonly string[];
}

/** A filter that can't be read; the message says where. */
export class FilterError extends Error {
  override name = 'FilterError';
}

/** OpenTelemetry's names of the same things. */
const ALIASES: Record<string, string> = {
  'process.executable.name': 'process',
  'process.executable.path': 'path',
  'process.command': 'command',
  'process.pid': 'pid',
  'process.linux.cgroup': 'cgroup',
  'host.name': 'host',
  'service.name': 'service',
  'container.id': 'container',
  'thread.name': 'thread',
  'thread.id': 'tid',
  'cpu.logical_number': 'cpu',
  'profile.frame.type': 'kind',
};

/** Any other attribute that a sender gave, with this in front of its name. */
export type AttributeLabel = `@${string}`;

/** Labels that all samples of a thread share. */
export const SERIES_LABELS = [
  'process',
  'host',
  'service',
  'container',
  'thread',
  'pid',
  'tid',
  'path',
  'command',
  'cgroup',
] as const;
export type SeriesLabel = (typeof SERIES_LABELS)[number];

/** Labels of single samples besides `cpu`: the IDs that they are linked to. Listed where samples have any. */
export const LINK_LABELS = ['trace_id', 'span_id'] as const;
export type LinkLabel = (typeof LINK_LABELS)[number];

export const isLinkLabel = (key: string): key is LinkLabel => LINK_LABELS.some((label) => label === key);

/** Labels of frames: they hold where one frame of the stack has the value. */
export const FRAME_LABELS: readonly string[] = ['kind', 'frame'];
export const LABELS: readonly string[] = [...SERIES_LABELS, 'cpu', ...FRAME_LABELS];

export const isSeriesLabel = (key: string): key is SeriesLabel =>
  SERIES_LABELS.some((label) => label === key);

/** In front of the name of a label that a program has set. */
const LABEL_KEY = 'label.';

const MAX_TERMS = 64;
const MAX_LENGTH = 4096;

/** A key is quoted where it has other characters, as labels of programs may. */
const TERM =
  /\s*([A-Za-z_@][\w./-]*|@"(?:[^"\\]|\\.)+")\s*(!=|!~|=|~)\s*((?:"(?:[^"\\]|\\.)*"|[^\s",]+)(?:,(?:"(?:[^"\\]|\\.)*"|[^\s",]+))*)\s*/y;
const VALUE = /"((?:[^"\\]|\\.)*)"|[^\s",]+/g;

/** @throws FilterError */
export function parseFilter(text: string): Matcher[] {
  return readTerms(text, 'process=node cpu=0,1').map(({ key, operator, values }) => {
    if (operator.endsWith('~')) for (const value of values) toPattern(value);
    return { key: labelOf(key), operator, values };
  });
}

/**
 * Terms of any keys.
 *
 * @throws FilterError that gives the example
 */
export function readTerms(text: string, example: string): Matcher[] {
  if (text.length > MAX_LENGTH) throw new FilterError(`the text is longer than ${MAX_LENGTH} characters`);
  const terms: Matcher[] = [];
  for (let at = 0; at < text.trimEnd().length; at = TERM.lastIndex) {
    TERM.lastIndex = at;
    const match = TERM.exec(text);
    if (match === null) {
      throw new FilterError(`"${text.slice(at)}" can't be read: write KEY=VALUE, such as ${example}`);
    }
    const key = match[1]!.replace(/^@"(.*)"$/s, (_, quoted: string) => `@${unquoted(quoted)}`);
    terms.push({ key, operator: match[2] as Operator, values: readValues(match[3]!) });
    if (terms.length > MAX_TERMS) throw new FilterError(`the text has more than ${MAX_TERMS} terms`);
  }
  return terms;
}

const readValues = (text: string): string[] =>
  [...text.matchAll(VALUE)].map(([plain, quoted]) => (quoted === undefined ? plain : unquoted(quoted)));

const unquoted = (quoted: string): string => quoted.replace(/\\(.)/gs, '$1');

/**
 * Attributes have a dot in their name, as OpenTelemetry's have, or are written with @: so a misspelt label is an error.
 *
 * @throws FilterError naming the known keys
 */
export function labelOf(name: string): string {
  const key = Object.hasOwn(ALIASES, name) ? ALIASES[name]! : name;
  if (LABELS.includes(key) || isLinkLabel(key)) return key;
  if (isAttributeLabel(key) && key.length > 1) return labelOfAttribute(key.slice(1));
  if (key.startsWith(LABEL_KEY)) return `@${PROGRAM_LABEL}${key.slice(LABEL_KEY.length)}`;
  if (key.includes('.')) return `@${key}`;
  throw new FilterError(
    `"${name}" is not a key: use one of ${[...LABELS, ...LINK_LABELS].join(', ')}, or an attribute such as deployment.environment or @region`,
  );
}

const labelOfAttribute = (name: string): string =>
  Object.hasOwn(ALIASES, name) ? ALIASES[name]! : `@${name}`;

export const isLabelOfProgram = (label: AttributeLabel): boolean => label.startsWith(`@${PROGRAM_LABEL}`);

/** As people write it: labels of programs have attributes whose name is longer than they are. */
export const titleOfAttribute = (label: AttributeLabel): string =>
  isLabelOfProgram(label) ? LABEL_KEY + label.slice(1 + PROGRAM_LABEL.length) : label.slice(1);

export const isAttributeLabel = (key: string): key is AttributeLabel => key.startsWith('@');

/** @throws FilterError */
export function toPattern(source: string): Pattern {
  try {
    return compilePattern(source);
  } catch (error) {
    throw new FilterError((error as Error).message);
  }
}
