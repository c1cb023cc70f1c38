/** RFC 3492 as Rust's v0 names use it: the delimiter is `_`, and letters beyond ASCII come behind it. */
import { NotDemangled } from './output.ts';

const [BASE, T_MIN, T_MAX, SKEW, DAMP] = [36, 1, 26, 38, 700];
const MAX_LETTERS = 1024;

/** Throws {@link NotDemangled}. */
export function decodePunycode(encoded: string): string {
  const split = encoded.lastIndexOf('_');
  const letters = split < 0 ? [] : [...encoded.slice(0, split)];
  let [n, i, bias] = [0x80, 0, 72];
  for (let at = split + 1; at < encoded.length; ) {
    const before = i;
    for (let weight = 1, k = BASE; ; k += BASE) {
      const digit = digitOf(encoded.charCodeAt(at++));
      i += digit * weight;
      const threshold = Math.min(Math.max(k - bias, T_MIN), T_MAX);
      if (digit < threshold) break;
      weight *= BASE - threshold;
      if (i > 0x7fff_ffff || at >= encoded.length) throw new NotDemangled('no punycode');
    }
    const count = letters.length + 1;
    bias = adapt(i - before, count, before === 0);
    n += Math.floor(i / count);
    i %= count;
    if (n > 0x10ffff || (n >= 0xd800 && n < 0xe000) || count > MAX_LETTERS)
      throw new NotDemangled('no punycode');
    letters.splice(i++, 0, String.fromCodePoint(n));
  }
  return letters.join('');
}

function digitOf(code: number): number {
  if (code >= 0x61 && code <= 0x7a) return code - 0x61;
  if (code >= 0x30 && code <= 0x39) return code - 0x30 + 26;
  throw new NotDemangled('no punycode');
}

function adapt(delta: number, count: number, isFirst: boolean): number {
  let rest = Math.floor(delta / (isFirst ? DAMP : 2));
  rest += Math.floor(rest / count);
  let k = 0;
  while (rest > ((BASE - T_MIN) * T_MAX) / 2) {
    rest = Math.floor(rest / (BASE - T_MIN));
    k += BASE;
  }
  return k + Math.floor(((BASE - T_MIN + 1) * rest) / (rest + SKEW));
}
