/**
 * `${NAME}`, `${env:NAME:-default}` and `$$` in a value, by the rules of OpenTelemetry's declarative configuration
 * (opentelemetry-specification, configuration/data-model.md, "Environment variable substitution"), and `${file:PATH}`,
 * as its Collector has it, for secrets.
 */

import { excerpt } from '../../common/base/printable.ts';

export interface SubstitutionSources {
  env: Record<string, string | undefined>;
  /** Text of a file; throws a sentence. */
  readFile(path: string): string;
}

const REFERENCE = /\$\$|\$\{([^}]*)\}/g;
const VARIABLE = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

/** Once: what is put in is not looked at again. A variable that is not set, or empty, is its default, or nothing. */
export function substitute(text: string, { env, readFile }: SubstitutionSources): string {
  // behind the last end of a reference the pattern would look for one from each "${" on
  const end = text.lastIndexOf('}') + 1;
  const replaced = text.slice(0, end).replace(REFERENCE, (whole, inner: string | undefined) => {
    if (inner === undefined) return '$';
    if (inner.startsWith('file:')) return readFile(inner.slice('file:'.length)).replace(/\r?\n$/, '');
    const [, name, otherwise = ''] = VARIABLE.exec(inner) ?? [];
    if (name === undefined)
      throw new Error(
        `${excerpt(whole)} is not a reference: write \${NAME}, \${NAME:-default} or \${file:PATH}, and $$ for a "$"`,
      );
    return env[name] || otherwise;
  });
  return replaced + text.slice(end).replaceAll('$$', '$');
}
