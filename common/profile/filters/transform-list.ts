/**
 * Transforms of stacks as text: `focus=parse hide~^v8:: library=libc.so.6 recursion=all only=mine`, applied from left
 * to right. Values follow the rules of filters.
 */
import { FilterError, readTerms, toPattern } from './filter.ts';
import { readIdleMode } from './idle-pools.ts';
import { RUNTIMES, readRuntimes } from './my-code.ts';

export const TRANSFORMS = {
  focus: 'stacks begin at the function; those without it are left out',
  hide: 'the function is taken out: what it called hangs below its caller, which gets its own events',
  collapse: 'what the function called is taken out: the events become its own',
  library: 'neighbouring frames of a binary become one',
  kind: 'neighbouring frames of a kind become one',
  recursion: 'calls of the function by itself become one; "all": of every function',
  idle: '"fold": stacks of threads that wait for work become one box of their pool; "hide": they are left out',
  only: `"mine": frames of the kernel, of runtimes and of their libraries are taken out; or of some runtimes: ${RUNTIMES.join(', ')}`,
} as const;

export type TransformName = keyof typeof TRANSFORMS;

export interface Transform {
  name: TransformName;
  /** `~`: values are unanchored regular expressions. */
  operator: '=' | '~';
  values: readonly string[];
}

const MAX_TRANSFORMS = 20;

/** @throws FilterError */
export function parseTransforms(text: string): Transform[] {
  const transforms = readTerms(text, 'focus=main').map(({ key, operator, values }): Transform => {
    if (!Object.hasOwn(TRANSFORMS, key)) {
      throw new FilterError(`"${key}" is not a transform: use one of ${Object.keys(TRANSFORMS).join(', ')}`);
    }
    if (operator !== '=' && operator !== '~') {
      throw new FilterError(
        `"${key}${operator}" is not a transform: write ${key}=VALUE or ${key}~EXPRESSION`,
      );
    }
    if (operator === '~') for (const value of values) toPattern(value);
    if (key === 'only' && (operator !== '=' || readRuntimes(values) === undefined)) {
      throw new FilterError(
        `"${key}${operator}${values.join()}": write only=mine, or runtimes of ${RUNTIMES.join(', ')}`,
      );
    }
    if (key === 'idle' && (operator !== '=' || readIdleMode(values) === undefined)) {
      throw new FilterError(`"${key}${operator}${values.join()}": write idle=fold or idle=hide`);
    }
    return { name: key as TransformName, operator, values };
  });
  if (transforms.length > MAX_TRANSFORMS) throw new FilterError(`more than ${MAX_TRANSFORMS} transforms`);
  return transforms;
}
