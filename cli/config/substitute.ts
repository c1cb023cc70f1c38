/**
 * `${NAME}`, `${env:NAME:-default}` and `$$` in a value, by the rules of OpenTelemetry's declarative configuration
 * (opentelemetry-specification, configuration/data-model.md, "Environment variable substitution"), and `${file:PATH}`,
 * as its Collector has it, for secrets.
 */

export interface SubstitutionSources {
  env: Record<string, string | undefined>;
  /** Text of a file; throws a sentence. */
  readFile(path: string): string;
}

const REFERENCE = /\$\$|\$\{([^}]*)\}/g;
const VARIABLE = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

/** Once: what is put in is not looked at again. A variable that is not set, or empty, is its default, or nothing. */
export function substitute(text: string, { env, readFile }: SubstitutionSources): string {
  return text.replace(REFERENCE, (whole, inner: string | undefined) => {
    if (inner === undefined) return '$';
    if (inner.startsWith('file:')) return readFile(inner.slice('file:'.length)).replace(/\r?\n$/, '');
    const [, name, otherwise = ''] = VARIABLE.exec(inner) ?? [];
    if (name === undefined)
      throw new Error(
        `${whole} is no reference: write \${NAME}, \${NAME:-default} or \${file:PATH}, and $$ for a "$"`,
      );
    return env[name] || otherwise;
  });
}
