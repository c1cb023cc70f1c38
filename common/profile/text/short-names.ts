import { demangle } from '../../symbols/demangle/demangle.ts';
import type { Profile } from '../model/profile.ts';

/**
 * Names for a narrow place: `Parser::parse` without its parameters, result and template arguments, where a function has
 * a mangled name beside its own. Functions that differ in no more than that have the same name then.
 */
export const withShortNames = (profile: Profile): Profile => ({
  ...profile,
  functions: profile.functions.map((func) => {
    const name = demangle(func.systemName, 'short');
    return name === func.systemName ? func : { ...func, name };
  }),
});
