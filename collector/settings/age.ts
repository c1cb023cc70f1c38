/** Lengths of time that samples are kept for. */
import * as v from 'valibot';

const AGE_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90m`, `6h`, `7d`; NaN if it is none of these, or less than a minute. */
export function parseAge(text: string): number {
  const match = /^(\d{1,6}(?:\.\d+)?)([mhd])$/.exec(text.trim());
  const ms = match === null ? 0 : Number(match[1]) * AGE_MS[match[2]!]!;
  return ms >= 60_000 ? ms : Number.NaN;
}

export const age = v.pipe(
  v.string(),
  v.check(
    (text) => parseAge(text) > 0,
    ({ input }) => `--max-age is "${input}": give a length of time such as 90m, 6h or 7d`,
  ),
  v.transform(parseAge),
);
