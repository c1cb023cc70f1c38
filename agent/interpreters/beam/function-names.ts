/** Functions as their languages write them: `lists:map/2`, `Enum.map/2`, `anonymous fn/1 in Chain.run/1`. */
import type { BeamFunction } from './modules.ts';

type Mfa = Pick<BeamFunction, 'module' | 'name' | 'arity'>;

const ELIXIR = 'Elixir.';
const PLAIN_ATOM = /^\p{Ll}[\p{L}\p{N}_@]*$/u;
/** What compilers call a function that is written in another: `-run/1-fun-0-`. */
const LAMBDA = /^-(.+)\/(\d+)-fun-\d+-$/su;
const PLAIN_ELIXIR = /^[\p{L}_][\p{L}\p{N}_]*[?!]?$/u;
const OPERATOR = /^[-+*/<>=!&|^~@.%\\]{1,3}$/;
const MACRO = 'MACRO-';

export function nameOf({ module, name, arity }: Mfa): string {
  if (!module.startsWith(ELIXIR)) return `${erlangAtom(module)}:${erlangAtom(name)}/${arity}`;
  const [, outer, outerArity] = LAMBDA.exec(name) ?? [];
  const own = module.slice(ELIXIR.length);
  if (outer !== undefined) return `anonymous fn/${arity} in ${own}.${elixirName(outer, Number(outerArity))}`;
  return `${own}.${elixirName(name, arity)}`;
}

const erlangAtom = (atom: string): string =>
  PLAIN_ATOM.test(atom) ? atom : `'${atom.replace(/[\\']/g, '\\$&')}'`;

/** The compiler gives macros the caller as a parameter in front of theirs. */
function elixirName(name: string, arity: number): string {
  if (name.startsWith(MACRO)) return elixirName(name.slice(MACRO.length), arity - 1);
  const isPlain = PLAIN_ELIXIR.test(name) || OPERATOR.test(name);
  return `${isPlain ? name : JSON.stringify(name)}/${arity}`;
}
