/**
 * Demangles Rust's legacy names: an Itanium nested name whose last part is a hash, `_ZN3std2io5Stdin17h<16 hex>E`,
 * with escapes for what C++ has no letters for. The hash is left out.
 */
import { NotDemangled } from './output.ts';

const LEGACY = /^_{1,2}ZN(.*)17h([0-9a-f]{16})E(?:\.llvm\.[0-9A-F]+)?(\.[A-Za-z0-9_.]+)?$/;
const ESCAPES: Readonly<Record<string, string>> = {
  SP: '@',
  BP: '*',
  RF: '&',
  LT: '<',
  GT: '>',
  LP: '(',
  RP: ')',
  C: ',',
};

/** A C++ name may look like one, but hardly ends in a part of 16 hexadecimal digits, five or more of them different. */
export function isLegacyRust(mangled: string): boolean {
  const match = LEGACY.exec(mangled);
  return match !== null && new Set(match[2]).size >= 5;
}

/** Throws {@link NotDemangled}. */
export function demangleLegacyRust(mangled: string): string {
  const [, path, , suffix] = LEGACY.exec(mangled) ?? [];
  if (path === undefined) throw new NotDemangled('no legacy name');
  const parts: string[] = [];
  for (let at = 0; at < path.length; ) {
    const digits = /^[1-9]\d{0,4}/.exec(path.slice(at, at + 5))?.[0];
    if (!digits) throw new NotDemangled('no length');
    at += digits.length;
    const part = path.slice(at, at + Number(digits));
    if (part.length < Number(digits)) throw new NotDemangled('too short');
    parts.push(unescapePart(part));
    at += part.length;
  }
  if (parts.length === 0) throw new NotDemangled('no path');
  return parts.join('::') + (suffix ?? '');
}

function unescapePart(part: string): string {
  // an identifier begins with a letter: an escape in front has an underscore before it
  const text = part.startsWith('_$') ? part.slice(1) : part;
  return text.replace(/\.\.|\$([A-Z]{1,2}|u[0-9a-f]{1,6})\$/g, (whole, code: string | undefined) => {
    if (code === undefined) return '::';
    if (!code.startsWith('u')) return ESCAPES[code] ?? whole;
    const point = Number.parseInt(code.slice(1), 16);
    return point >= 0x20 && point <= 0x10ffff && !(point >= 0xd800 && point < 0xe000) && point !== 0x7f
      ? String.fromCodePoint(point)
      : whole;
  });
}
