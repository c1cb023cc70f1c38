/**
 * Names as their authors wrote them: C++ and Rust. Everything else — C, Go, Java, Scala, OCaml's `camlStdlib__f_1` —
 * stays as it is. So does what is too long, too deep or not by the rules.
 */
import { demangleItanium } from './itanium.ts';
import { MAX_MANGLED, NotDemangled } from './output.ts';
import { demangleLegacyRust, isLegacyRust } from './rust-legacy.ts';
import { demangleRustV0 } from './rust-v0.ts';

/** `full`: as c++filt and rustfilt; `short`: without parameters, results and C++ template arguments. */
export type NameForm = 'full' | 'short';

/** A suffix of the linker's, not of the name: see plt-symbols.ts. */
const PLT = '@plt';

/** The demangled name, or the name itself where it is not mangled. */
export function demangle(name: string, form: NameForm = 'full'): string {
  if (!/^_{1,2}[ZR]/.test(name) || name.length > MAX_MANGLED) return name;
  if (name.endsWith(PLT)) {
    const target = name.slice(0, -PLT.length);
    const readable = demangle(target, form);
    return readable === target ? name : readable + PLT;
  }
  try {
    if (/^_{1,2}R/.test(name)) return demangleRustV0(name);
    return isLegacyRust(name) ? demangleLegacyRust(name) : demangleItanium(name, { short: form === 'short' });
  } catch (error) {
    if (error instanceof NotDemangled) return name;
    throw error;
  }
}
